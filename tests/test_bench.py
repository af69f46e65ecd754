"""What `psrl bench` divides by the time it takes: the operations of a plan, counted from the networks' shapes."""

from itertools import pairwise

from psrl import bench


def products(sizes: list[int]) -> int:
    """Multiplications and additions of one row through a network."""
    return 2 * sum(a * b for a, b in pairwise(sizes))


def test_the_operations_of_a_plan_are_those_of_its_networks():
    """Pendulum: 4 inputs, 8 features; population 100, horizon 20, 5 iterations."""
    networks = products([4, 200, 200, 8, 3]) + products([4, 200, 200, 8, 1])
    _, one = bench.planner_call(bench.ready_agent("pendulum", "learned", 1))
    _, five = bench.planner_call(bench.ready_agent("pendulum", "learned", 5))
    assert one == networks * 100 * 20 * 5
    assert five == 5 * one


def test_a_particle_of_pets_counts_one_network():
    _, operations = bench.planner_call(bench.ready_agent("pendulum", "oracle", 1, "pets"))
    assert operations == products([4, 200, 200, 6]) * 5 * 100 * 20 * 5
