"""A Ray cluster of two nodes with one core each on this machine, to try `psrl sweep` on a cluster.

It prints its address. Enter kills the second node, as a crash would; end of input (Ctrl-D) stops both.
"""

import os
import sys

from psrl.pool import light_imports


def main() -> None:
    # as psrl.pool does for a single machine: 127.0.0.1 is its address, no port is open to others
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    with light_imports():
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
        cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **node})
        second = cluster.add_node(**node)
        print(f"RAY_ADDRESS={cluster.address}", flush=True)
        try:
            for _ in sys.stdin:
                if second in cluster.list_all_nodes():
                    cluster.remove_node(second, allow_graceful=False)
                    print("the second node is gone", flush=True)
        except KeyboardInterrupt:
            pass
        finally:
            cluster.shutdown()


if __name__ == "__main__":
    main()
