"""Sweeps on Ray, embedded and on a cluster of two nodes: whatever dies or raises, each table is that of a quiet run."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import tiny

from psrl import checkpoint, config, engine
from psrl.checkpoint import Snapshot
from psrl.progress import duration
from psrl.sweep import Sweep, select

QUICK = {"task": "pendulum", "method": "random", "episodes": 3}
LONG = {"task": "cartpole", "method": "psrl", "episodes": 20, "set": {"planner": {"iterations": 8, "population": 200}}}


@contextmanager
def running(folder: Path, *arguments: str, **extra: str):
    """A sweep in a process of its own that is ended with the test."""
    process = tiny.start(folder, "sweep", *arguments, **extra)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def table(folder: Path, name: str) -> list[str]:
    return tiny.without_times((folder / "results" / "runs" / f"{name}.csv").read_text())


def expected(folder: Path, name: str) -> list[str]:
    """The table of the same experiment, run quietly in this process."""
    run = config.experiment(name, config.read_params(folder / "params.yaml"))
    keys = [run.task, run.method, run.reward, str(run.noise)]
    rows = ["task,method,reward,noise,seed,episode,steps,return"]
    for seed in run.seeds:
        *_, last = engine.episodes(run.with_seeds((seed,)), "cpu", None)
        for number, entry in enumerate(last.episodes, start=1):
            rows.append(",".join([*keys, f"{seed},{number},{number * run.steps},{entry['returns'][0]!r}"]))
    return rows


def wait_until(condition, process: subprocess.Popen, seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


def descendants(pid: int) -> dict[int, str]:
    """Process id -> title of all processes begun by one, from /proc."""
    parents, titles = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            titles[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
        except (OSError, IndexError):
            continue  # gone meanwhile
    found, level = {}, {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found |= {child: titles.get(child, "") for child in level}
    return found


def episodes_of(folder: Path, name: str) -> int:
    unit = config.experiment(name, config.read_params(folder / "params.yaml"))
    snapshot = checkpoint.load(unit, folder / "checkpoints")
    return len(snapshot.episodes) if snapshot else 0


def test_dying_and_raising_workers_leave_the_others_alone(tmp_path):
    experiments = {
        "dies": LONG | {"seeds": [0]},
        "raises": QUICK | {"seeds": [0]},
        "seeds": {"task": "pendulum", "method": "sac", "seeds": [0, 1], "episodes": 2},
        "fine": QUICK | {"seeds": [3, 4]},
    }
    folder = tiny.repository(tmp_path, experiments)
    broken = config.experiment("raises", config.read_params(folder / "params.yaml"))
    elsewhere = Snapshot({}, [], [{"device": "cuda"}])  # begun on a GPU, which a worker on a CPU does not continue
    checkpoint.save(broken, checkpoint.dumps(broken, elsewhere), folder / "checkpoints")
    with running(folder, "--workers", "2") as process:
        wait_until(lambda: episodes_of(folder, "dies") >= 3, process)
        workers = [pid for pid, title in descendants(process.pid).items() if title.startswith("ray::_work")]
        assert workers
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    assert "raises seed 0: ConfigError: --device is 'cpu', but this run was begun on cuda" in out
    assert "1 of 4 experiments have no results: raises" in out
    assert "worker died" in err and "it goes on after episode" in err
    assert not (folder / "results" / "runs" / "raises.csv").exists()
    for name in ("dies", "seeds", "fine"):
        assert table(folder, name) == expected(folder, name)
    again = tiny.psrl(folder, "sweep", "dies", "s*", "fine")
    assert again.returncode == 0 and again.stdout == "3 of 3 experiments are current\n"


@pytest.fixture
def cluster():
    """tools/two_nodes.py: a Ray cluster of two nodes on the loopback interface; a line sent to it kills the second."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    command = [sys.executable, str(tiny.ROOT / "tools" / "two_nodes.py")]
    with subprocess.Popen(command, env=tiny.environment(), **pipes) as process:
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(timeout=120)


def test_a_cluster_loses_a_node_and_no_result(tmp_path, cluster):
    long = {f"long-{seed}": LONG | {"seeds": [seed]} for seed in (0, 1)}
    folder = tiny.repository(tmp_path, long | {f"quick-{seed}": QUICK | {"seeds": [seed]} for seed in (0, 1)})
    variable, address = cluster.stdout.readline().strip().split("=")
    assert variable == "RAY_ADDRESS" and address.startswith("127.0.0.1:")
    with running(folder, "long-*", RAY_ADDRESS=address) as process:
        wait_until(lambda: all(episodes_of(folder, name) >= 2 for name in long), process)
        print("lose a node", file=cluster.stdin, flush=True)
        out, err = process.communicate(timeout=400)
    assert process.returncode == 0, (out, err)
    assert "worker died" in err
    # the node that is left, with checkpoints on a path that all machines see; one of the two runs has begun there
    shared = folder / "shared"
    begun = config.experiment("quick-1", config.read_params(folder / "params.yaml"))
    next(engine.saved_episodes(begun, "cpu", shared, None))
    done = tiny.psrl(folder, "sweep", "quick-*", "--storage", str(shared), RAY_ADDRESS=address)
    assert done.returncode == 0, done
    assert len(checkpoint.load(begun, shared).episodes) == 3
    for name in (*long, "quick-0", "quick-1"):
        assert table(folder, name) == expected(folder, name)


def test_one_unit_runs_here_and_an_interrupt_says_how_to_go_on(tmp_path):
    folder = tiny.repository(tmp_path, {"one": QUICK | {"seeds": [0, 1], "episodes": 100000}})
    with running(folder, "one") as process:
        wait_until(lambda: list(folder.glob("checkpoints/*/checkpoint")), process)
        assert not descendants(process.pid)
        second = tiny.psrl(folder, "sweep", "one")
        assert second.returncode == 1 and f"process {process.pid} on" in second.stdout
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip().endswith("Go on with: psrl sweep one")


def test_a_reader_that_leaves_early_gets_one_sentence(tmp_path):
    folder = tiny.repository(tmp_path, {"one": QUICK | {"seeds": [0]}})
    with running(folder, "--dry") as process:
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(timeout=60) == 1
    assert told == "psrl: whoever read the output left before its end\n"


@pytest.mark.parametrize("arguments", [["--storage", "params.yaml"], ["--workers", "1"]], ids=["storage", "results"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(arguments, tmp_path):
    folder = tiny.repository(tmp_path, {"one": QUICK | {"seeds": [0]}})
    if "--storage" not in arguments:
        (folder / "results").touch()
    done = tiny.psrl(folder, "sweep", *arguments)
    assert done.returncode == 2 and "; valid: " in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert not list(folder.glob("checkpoints/*/checkpoint"))


def test_what_is_current_is_known_without_torch_and_ray(tmp_path):
    folder = tiny.repository(tmp_path, {"a": QUICK | {"seeds": [0]}, "b": QUICK | {"seeds": [1], "episodes": 2}})
    assert tiny.psrl(folder, "sweep", "a").returncode == 0
    code = (
        "import sys; from psrl.cli import main; code = main(sys.argv[1:]);"
        "assert not {'torch', 'ray', 'mujoco', 'pandas'} & set(sys.modules); sys.exit(code)"
    )

    def light(*arguments: str) -> str:
        command = [sys.executable, "-c", code, "sweep", *arguments]
        done = subprocess.run(command, cwd=folder, env=tiny.environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert light("a") == "1 of 1 experiments are current\n"
    assert "b: missing; seeds 1; episodes 2;" in light("--dry")
    runs = {name: values | {"episodes": 4} for name, values in {"a": QUICK | {"seeds": [0]}}.items()}
    tiny.repository(folder, runs)
    assert "a: stale" in light("--dry")


def test_experiments_share_the_units_they_have_in_common():
    sac = {"task": "pendulum", "method": "sac", "episodes": 2}
    params = tiny.params({"few": sac | {"seeds": [0, 1]}, "more": sac | {"seeds": [1, 2], "episodes": 5}})
    jobs = Sweep(config.experiments(params)).jobs.values()
    assert sorted((job.unit.seeds, job.unit.episodes, len(job.names)) for job in jobs) == [
        ((0,), 2, 1),
        ((1,), 5, 2),
        ((2,), 5, 1),
    ]


def test_patterns_select_in_the_order_of_the_file():
    runs = config.experiments(tiny.params({name: QUICK | {"seeds": [0]} for name in ("b-1", "a-1", "a-2")}))
    assert list(select([], runs)) == ["b-1", "a-1", "a-2"]
    assert list(select(["a-*"], runs)) == ["a-1", "a-2"]
    assert list(select(["a-2", "?-1"], runs)) == ["b-1", "a-1", "a-2"]
    with pytest.raises(config.ConfigError, match="'c-"):
        select(["a-*", "c-*"], runs)


def test_the_estimate_follows_from_what_episodes_took():
    runs = config.experiments(
        tiny.params({name: QUICK | {"seeds": [i], "episodes": 12} for i, name in enumerate("ab")})
    )
    sweep = Sweep(runs)
    assert "left" not in sweep.status(2)
    first, second = sweep.jobs.values()
    entry = {"returns": [0.0], "metrics": {}, "seconds": 60.0, "wall": 60.0, "cpu": 60.0}
    first.snapshot, first.running = Snapshot({}, [entry | {"wall": 1.0}, entry]), True
    assert "1 units waiting, about 12 min left; running a seed 0 2/12" in sweep.status(2)  # b takes 12
    assert "about 22 min left" in sweep.status(1)
    second.error = "it failed"
    assert "0 units waiting, about 10 min left" in sweep.status(2)  # ten episodes, one after another


def test_durations_read_well():
    assert [duration(s) for s in (4.4, 89, 90, 3600, 12000)] == ["4 s", "89 s", "2 min", "1 h 0 min", "3 h 20 min"]


def test_a_profile_makes_published_results_longer_and_never_replaces_them(tmp_path):
    folder = tiny.repository(tmp_path, {"a": QUICK | {"seeds": [0]}})
    (folder / "profiles").mkdir()
    for name, episodes in (("shorter", 2), ("longer", 4)):
        (folder / "profiles" / f"{name}.yaml").write_text(f"each: {{episodes: {episodes}}}\n")
    assert tiny.psrl(folder, "sweep").returncode == 0
    before = (folder / "results" / "runs" / "a.csv").read_bytes()
    refused = tiny.psrl(folder, "sweep", "--profile", "shorter")
    assert refused.returncode == 2 and "'a' has published results of 3 episodes" in refused.stderr
    assert (folder / "results" / "runs" / "a.csv").read_bytes() == before
    longer = tiny.psrl(folder, "sweep", "--profile", "longer")
    assert longer.returncode == 0 and "copy from profiles/longer.yaml" in longer.stdout
    assert len(table(folder, "a")) == 5 and table(folder, "a")[:4] == tiny.without_times(before.decode())
    cut = tiny.psrl(folder, "sweep")
    assert cut.returncode == 2 and "'a' asks for 3 episodes and has results of 4" in cut.stderr
    assert len(table(folder, "a")) == 5, "a params.yaml that lags behind cuts nothing"


def test_a_cluster_that_is_not_there_is_named_at_once(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    refused = tiny.psrl(tiny.repository(tmp_path, {"a": QUICK | {"seeds": [0]}}), "sweep", RAY_ADDRESS=address)
    assert refused.returncode == 2 and f"RAY_ADDRESS is {address!r}, but no cluster answers" in refused.stderr
