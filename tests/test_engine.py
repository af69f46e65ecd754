"""A run gives the same table however often it is stopped, and says in a sentence why it cannot go on."""

import json
import os
import random
import resource
import signal
import time
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
import tiny

from psrl import checkpoint, cli, engine, paths, results
from psrl.config import resolve

PSRL = ["run", "cartpole", "--method", "psrl", "--reward", "learned", "--noise", "0.01", "--seeds", "3,5"]
RANDOM = ["run", "pendulum", "--method", "random", "--seeds", "0,1"]
MBPO = ["run", "pendulum", "--method", "mbpo", "--seeds", "0,1"]
PROFILES = {
    "broken": "each: [",
    "empty": "",
    "list": "[1, 2]",
    "each": "each: 5",
    "set": "each: {set: 5}",
    "methods": "methods: {psrl: 5}",
    "experiments": "experiments: 5",
}


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A toy repository, the one that this process works in."""
    tiny.repository(tmp_path)
    for name, part in {"ROOT": ".", "PARAMS": "params.yaml", "CHECKPOINTS": "checkpoints"}.items():
        monkeypatch.setattr(paths, name, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(arguments: list[str], folder: Path) -> list[str]:
    """Run to the end in this process; the table without its times."""
    assert cli.main([*arguments, "--out", str(folder / "table.csv")]) == 0
    return tiny.without_times((folder / "table.csv").read_text())


def forked(arguments: list[str], prepare=lambda: None) -> int:
    """The process id of a copy of this one that runs the command: a real process, without the seconds of imports."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            prepare()
            code = cli.main(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def wait_for_checkpoint(folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not list(folder.glob("checkpoints/*/checkpoint")):
        assert time.monotonic() < deadline, "no episode within a minute"
        time.sleep(0.02)


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(("arguments", "episodes"), [(PSRL, "6"), (RANDOM, "60")], ids=["psrl", "random"])
def test_killed_at_random_moments_the_table_is_the_same(arguments, episodes, repository, monkeypatch):
    arguments = [*arguments, "--episodes", episodes]
    monkeypatch.setattr(paths, "CHECKPOINTS", repository / "uninterrupted")
    expected = table(arguments, repository)
    monkeypatch.setattr(paths, "CHECKPOINTS", repository / "timed")  # the first run also imported the method
    began = time.monotonic()
    assert table(arguments, repository) == expected
    needed = time.monotonic() - began
    monkeypatch.setattr(paths, "CHECKPOINTS", repository / "killed")
    moments = random.Random(len(arguments))
    killed = 0
    for _ in range(12):
        pid = forked([*arguments, "--out", str(repository / "forked.csv")])
        time.sleep(moments.uniform(0, needed / 3))
        os.kill(pid, signal.SIGKILL)
        killed += exit_code(pid) == -signal.SIGKILL
    assert killed >= 3
    assert table(arguments, repository) == expected


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_killed_while_it_saves_the_table_is_the_same(moment, repository, monkeypatch):
    arguments = [*RANDOM, "--episodes", "4"]
    monkeypatch.setattr(paths, "CHECKPOINTS", repository / "uninterrupted")
    expected = table(arguments, repository)
    monkeypatch.setattr(paths, "CHECKPOINTS", repository / "killed")

    def die_at_the_second_save() -> None:
        write, saves = os.replace, []

        def replace_and_die(source, target):
            saves.append(target)
            if len(saves) == 2 and moment == "during":
                os.truncate(source, os.path.getsize(source) // 2)
            if len(saves) == 2 and moment != "after":
                os.kill(os.getpid(), signal.SIGKILL)
            write(source, target)
            if len(saves) == 2:
                os.kill(os.getpid(), signal.SIGKILL)

        os.replace = replace_and_die

    assert exit_code(forked(arguments, die_at_the_second_save)) == -signal.SIGKILL
    unit = resolve(tiny.params(), task="pendulum", method="random", seeds=[0, 1], episodes=4)
    assert len(checkpoint.load(unit).episodes) == (2 if moment == "after" else 1)
    assert table(arguments, repository) == expected
    assert not list(checkpoint.folder(unit).glob(".*.part"))


@pytest.mark.parametrize("arguments", [RANDOM, MBPO], ids=["random", "mbpo"])
def test_asking_for_more_episodes_continues_and_for_fewer_cuts(arguments, repository):
    four = table([*arguments, "--episodes", "4"], repository)
    before = {path: path.read_bytes() for path in repository.glob("checkpoints/*/checkpoint*")}
    two = table([*arguments, "--episodes", "2"], repository)
    assert two == [line for line in four if line.split(",")[5] in ("episode", "1", "2")]
    assert {path: path.read_bytes() for path in repository.glob("checkpoints/*/checkpoint*")} == before
    six = table([*arguments, "--episodes", "6"], repository)
    assert [line for line in six if line in four] == four
    assert len(six) == 1 + 2 * 6


def test_seeds_run_alone_or_together_with_others(repository):
    both = table([*RANDOM, "--episodes", "3"], repository)
    alone = table([*RANDOM[:-1], "1", "--episodes", "3"], repository)
    assert alone[1:] == both[4:]


def test_a_refused_checkpoint_starts_the_run_over(repository, capsys):
    arguments = [*RANDOM, "--episodes", "3"]
    expected = table(arguments, repository)
    unit = resolve(tiny.params(), task="pendulum", method="random", seeds=[0, 1], episodes=3)
    snapshot = checkpoint.load(unit)
    unfit = replace(snapshot, state={"generators": []}, episodes=snapshot.episodes[:1])
    for content in (b"nonsense", checkpoint.dumps(unit, unfit)):
        checkpoint.save(unit, content)
        assert table(arguments, repository) == expected
        assert "starts over" in capsys.readouterr().err
    assert len(list(checkpoint.folder(unit).glob("*.refused"))) == 2


def test_a_checkpoint_that_memory_cannot_hold_is_not_thrown_away(repository):
    arguments = [*RANDOM, "--episodes", "3"]
    expected = table(arguments, repository)
    unit = resolve(tiny.params(), task="pendulum", method="random", seeds=[0, 1], episodes=3)

    def no_memory(_: bytes) -> dict:  # a toy checkpoint is too small to run out of it in earnest
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(checkpoint, "_read", no_memory)
        checkpoint.load(unit)
    assert [file.name for file in checkpoint.folder(unit).glob("checkpoint*")] == ["checkpoint"]
    assert table(arguments, repository) == expected


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([*PSRL, "--set", "bayes.prior_sd=1e-200"], "cartpole with psrl, seed 3, 5: episode 2 failed, the posterior"),
        (["run", "pendulum", "--method", "psrl-eb", "--set", "learning_rate=1e20"], "pendulum with psrl-eb, seed 0"),
        (["run", "pendulum", "--method", "pets", "--set", "learning_rate=1e20"], "the ensemble's loss is nan or inf"),
        (["run", "pendulum", "--method", "sac", "--set", "learning_rate=1e30"], "pendulum with sac, seed 0: episode"),
    ],
)
def test_numbers_that_are_no_longer_finite_are_a_sentence(arguments, named, repository, capsys):
    assert cli.main([*arguments, "--episodes", "3"]) == 1
    error = capsys.readouterr().err
    assert named in error and "the episodes before it are saved" in error and "Traceback" not in error


def test_an_interrupt_saves_and_says_how_to_go_on(tmp_path):
    folder = tiny.repository(tmp_path)
    arguments = [*RANDOM, "--episodes", "100000"]
    process = tiny.start(folder, *arguments)
    wait_for_checkpoint(folder)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip().splitlines()[-1].endswith(f"Go on with: psrl {' '.join(arguments)}")
    unit = resolve(tiny.params(), task="pendulum", method="random", seeds=[0, 1], episodes=1)
    assert checkpoint.load(unit, folder / "checkpoints").episodes


def test_two_processes_do_not_share_a_run(repository, capfd):
    pid = forked([*RANDOM, "--episodes", "100000"])
    try:
        wait_for_checkpoint(repository)
        assert cli.main([*RANDOM, "--episodes", "3"]) == 1
        assert f"process {pid} on" in capfd.readouterr().err
    finally:
        os.kill(pid, signal.SIGKILL)
        exit_code(pid)
    assert cli.main([*RANDOM, "--episodes", "3"]) == 0


def test_a_full_disk_is_a_sentence_and_leaves_the_old_files_whole(repository, capfd):
    expected = table([*PSRL, "--episodes", "5"], repository)
    (file,) = repository.glob("checkpoints/*/checkpoint")
    file.unlink()
    table([*PSRL, "--episodes", "2"], repository)
    before = file.read_bytes()

    def fill_the_disk() -> None:  # no file may grow beyond what is there: writing more fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), len(before)))

    capfd.readouterr()
    assert exit_code(forked([*PSRL, "--episodes", "5"], fill_the_disk)) == 1
    assert "cannot write" in capfd.readouterr().err
    assert file.read_bytes() == before
    assert not list(file.parent.glob(".*.part"))
    assert table([*PSRL, "--episodes", "5"], repository) == expected


def test_results_are_current_only_as_they_were_written(repository):
    run = resolve(tiny.params(), task="cartpole", method="random", seeds=[4, 2], episodes=3)
    files = results.Files.at(repository / "table.csv")
    assert not results.is_current(files, run)
    results.write(files, run, engine.run_here(run, "cpu", wait=False))
    assert results.is_current(files, run)
    assert not results.is_current(files, replace(run, episodes=4))
    assert not results.is_current(files, replace(run, settings=replace(run.settings, version=2)))
    for path in (files.runs, files.metrics, files.provenance):
        content = path.read_text()
        some = run.hash if path == files.provenance else "4"
        path.write_text(content.replace(some, "5", 1))
        assert not results.is_current(files, run), path
        path.unlink()
        assert not results.is_current(files, run), path
        path.write_text(content)
        assert results.is_current(files, run), path
    for damaged in ("null", "[]", "5", '"x"', "{"):
        files.provenance.write_text(damaged)
        assert not results.is_current(files, run), damaged


def test_the_tables_are_tidy_and_say_where_they_come_from(repository):
    run = resolve(tiny.params(), task="cartpole", method="psrl", seeds=[4, 2], episodes=3)
    files = results.Files.at(repository / "table.csv")
    results.write(files, run, engine.run_here(run, "cpu", wait=False))
    header, *rows = [line.split(",") for line in files.runs.read_text().splitlines()]
    assert header == "task,method,reward,noise,seed,episode,steps,return,seconds".split(",")
    keys = [(int(row[4]), int(row[5]), int(row[6])) for row in rows]
    assert keys == [(seed, episode, episode * run.steps) for seed in (2, 4) for episode in (1, 2, 3)]
    snapshot = checkpoint.load(run)
    assert [float(row[7]) for row in rows if row[4] == "4"] == [entry["returns"][0] for entry in snapshot.episodes]
    metrics = [line.split(",") for line in files.metrics.read_text().splitlines()[1:]]
    assert {"seconds_engine", "seconds_plan", "loss_dynamics"} <= {row[6] for row in metrics if row[5] == "2"}
    provenance = json.loads(files.provenance.read_text())
    assert provenance["configuration"] == json.loads(json.dumps(run.as_dict()))
    assert provenance["hash"] == run.hash
    (machine,) = provenance["machines"]
    assert machine["device"] == "cpu" and machine["threads"] == 1 and machine["cpu"]
    assert set(machine["versions"]) == {"python", *engine.PACKAGES}
    assert provenance["seconds"]["wall"] >= sum(float(row[8]) for row in rows[:3])
    assert 0 < provenance["seconds"]["cpu"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "walker"], "'walker'"),
        (["run", "reacher", "--noise", "0.1"], "noise"),
        (["run", "cartpole", "--method", "magic"], "'magic'"),
        (["run", "cartpole", "--device", "abacus"], "'abacus'"),
        (["run", "cartpole", "--episodes", "0"], "episodes"),
        (["run", "cartpole", "--seeds", "1,1"], "seeds"),
        (["run", "cartpole", "--set", "planner.horizon=0"], "planner.horizon"),
        (["run", "cartpole", "--set", "planner=3", "--set", "planner.horizon=x"], "planner"),
        (["run", "cartpole", "--set", "horizon"], "'horizon'"),
        (["run", "cartpole", "--set", "batch=["], "batch"),
        (["sweep", "nothing-*"], "'nothing-*'"),
        (["show", "nothing"], "'nothing'"),
        (["show", "nothing.csv"], "nothing.csv"),
        (["show", "params.csv"], "params.csv"),
        (["sweep", "--profile", "nothing"], "'nothing'"),
        (["run", "cartpole", "--set", f"planner.horizon={'9' * 400}"], "at most 9223372036854775807"),
        (["run", "cartpole", "--set", f"planner.horizon={'9' * 5000}"], "planner.horizon"),
        (["run", "cartpole", "--set", f"learning_rate={'9' * 400}"], "learning_rate"),
        (["run", "cartpole", "--set", "batch=1e2"], "batch"),
        (["run", "cartpole", "--out", ""], "has no name"),
        (["run", "cartpole", "--out", "folder.csv"], "folder.csv"),
        (["run", "cartpole", "--out", "pipe"], "pipe is there and not a file"),
        (["run", "cartpole", "--out", "params.yaml/table.csv"], "params.yaml/table.csv"),
        (["run", "cartpole", "--out", f"{'x' * 300}.csv"], "too long"),
        (["show", "header.csv"], "header.csv has no rows"),
        (["show", "folder.csv"], "folder.csv"),
        (["run", "pendulum", "--method", "oracle", "--reward", "learned"], "valid for oracle: oracle"),
        (["run", "pendulum", "--method", "psrl-eb", "--set", "bayes.prior_sd=5"], "set.bayes"),
        (["run", "cartpole", "--reward", "learned", "--set", "planning_reward=honest"], "set.planning_reward"),
        (["run", "cartpole", "--noise", "20"], "at most 10"),
        (["run", "pendulum", "--set", "bayes.noise_sd=1e155"], "bayes.noise_sd"),
        (["run", "pendulum", "--set", "planner.initial_variance=1e300"], "planner.initial_variance"),
        (["report", "--since", "nowhere"], "'nowhere'"),
        (["report"], "no commit"),
        (["bench", "plan", "--task", "walker"], "'walker'"),
        (["bench", "scaling", "--task", ""], "''"),
        (["bench", "memory", "--task", "pusher"], "valid for bench memory: none"),
        (["sweep", "--profile", "each"], "profile.each"),
        *((["sweep", "--profile", name], f"profile '{name}'") for name in ("empty", "list", "experiments")),
        (["sweep", "--profile", "broken"], "broken.yaml is not valid YAML"),
        (["sweep", "--profile", "set"], "profile.each.set"),
        (["sweep", "--profile", "methods"], "methods.psrl"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, named, repository, capsys):
    (repository / "params.csv").write_text("a,b\n1,2\n")
    (repository / "header.csv").write_text("episode,return\n")
    os.mkfifo(repository / "pipe")
    for folder in ("folder.csv", "profiles"):
        (repository / folder).mkdir()
    for name, text in PROFILES.items():
        (repository / "profiles" / f"{name}.yaml").write_text(text)
    assert cli.main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("psrl: ") and len(err.splitlines()) == 1 and named in err
    assert not (repository / "checkpoints").exists()


def test_tables_with_dots_in_their_names_do_not_share_what_is_beside_them():
    few, many = results.Files.at(Path("noise0.01")), results.Files.at(Path("noise0.02"))
    assert not set(vars(few).values()) & set(vars(many).values())
    assert results.Files.at(Path("a.b.csv")).metrics == Path("a.b.metrics.csv")


@pytest.mark.parametrize("arguments", [["run"], ["run", "cartpole", "--seeds", "a"], ["sweep", "--workers", "0"], []])
def test_wrong_usage_is_exit_code_2(arguments, repository, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: psrl" in capsys.readouterr().err


def test_show_draws_mean_and_range(repository, capsys):
    rows = [(1, 0.0), (1, 10.0), (2, 90.0), (2, 100.0)]
    lines = ["episode,return", *(f"{episode},{value}" for episode, value in rows)]
    (repository / "curve.csv").write_text("\n".join(lines))
    assert cli.main(["show", str(repository / "curve.csv")]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split()[:2] == ["1", "5.0"] and second.split()[:2] == ["2", "95.0"]
    assert first.index("●") < second.index("─") < second.index("●") < len(second)


def test_show_reads_the_table_that_run_wrote_whatever_it_is_called(repository, capsys):
    assert cli.main([*RANDOM, "--episodes", "2", "--out", "out.txt"]) == 0
    capsys.readouterr()
    assert cli.main(["show", "out.txt"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 2


def test_show_says_nan_where_every_trial_diverged(repository, capsys):
    (repository / "curve.csv").write_text("episode,return\n1,nan\n2,nan\n")
    assert cli.main(["show", "curve.csv"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [["1", "nan"], ["2", "nan"]]
