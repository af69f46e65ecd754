"""Only what params.yaml lists is analysed, all of it must be there, and what is planned besides is known by name."""

import csv

import numpy as np
import pytest
import synthetic
import yaml

from psrl import claims, curves, paper, paths, published, tables
from psrl.config import ConfigError, apply_profile
from psrl.figures import LABELS
from psrl.paper import FIGURE_1, FIGURE_2, Setting
from psrl.published import Study

REACHER = FIGURE_2[1]
NAMES = [
    *(f"reacher-oracle-{method}" for method in ("psrl", "psrl-eb", "pets", "mbpo")),
    *("reacher-random", "reacher-oracle", "reacher-learned-sac", "cartpole-noisy-oracle-psrl"),
    *("ablation-reacher-step", "ablation-reacher-width-double"),
]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A function that publishes experiments with invented results and makes their folder the repository."""

    def make(names):
        everything = synthetic.complete()
        folder = synthetic.repository(tmp_path, names)
        places = {"ROOT": ".", "PARAMS": "params.yaml", "RUNS": "results/runs", "METRICS": "results/metrics"}
        places |= {"PROVENANCE": "results/provenance", "TABLES": "results/tables"}
        for name, place in places.items():
            monkeypatch.setattr(paths, name, folder / place)
        return folder, everything

    return make


def test_published_and_planned_are_told_apart(repository):
    _, everything = repository(NAMES)
    study = Study.load()
    assert list(study.published) == NAMES
    assert set(study.planned) == set(everything["experiments"]) - set(NAMES)
    assert study.missing(FIGURE_1[0]) == ["psrl-eb", "pets", "mbpo"] and study.methods(FIGURE_1[0]) == ["psrl"]
    assert not study.is_planned(Setting("cartpole", 0.0, "learned"), "pets"), "it needs the reward function"


def test_a_curve_may_have_fewer_episodes_than_planned(repository):
    folder, everything = repository(NAMES)
    params = yaml.safe_load((folder / "params.yaml").read_text())
    params["experiments"]["reacher-oracle-psrl"]["episodes"] = 20
    synthetic.publish(folder, params)
    study = Study.load()
    assert study.find(REACHER, "psrl").returns.shape == (5, 20)
    assert study.goal["reacher-oracle-psrl"] == everything["experiments"]["reacher-oracle-psrl"]["episodes"] > 20


def test_files_that_nobody_lists_do_not_exist(repository):
    folder, _ = repository(NAMES)
    (folder / "results" / "runs" / "stray.csv").write_text("not,a,table\n")
    assert "stray" not in Study.load().published


@pytest.mark.parametrize("kind", ["runs", "metrics"])
def test_a_missing_file_is_named_in_one_sentence(repository, kind):
    folder, _ = repository(NAMES)
    (folder / "results" / kind / "reacher-oracle-mbpo.csv").unlink()
    with pytest.raises(ConfigError) as error:
        Study.load()
    assert str(error.value) == (
        f"params.yaml lists reacher-oracle-mbpo, but results/{kind}/reacher-oracle-mbpo.csv is not there; "
        "`psrl sweep reacher-oracle-mbpo` makes it"
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\n".join(text.splitlines()[:-1]),  # an episode is missing
        lambda text: text.replace("reacher,psrl,", "reacher,pets,"),  # of another method
        lambda text: text.replace(",return,", ",total,"),  # another column
        lambda text: "",
    ],
)
def test_results_of_something_else_are_refused(repository, change):
    folder, _ = repository(NAMES)
    path = folder / "results" / "runs" / "reacher-oracle-psrl.csv"
    path.write_text(change(path.read_text()))
    with pytest.raises(ConfigError, match=r"results/runs/reacher-oracle-psrl\.csv is not"):
        Study.load()


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": {"reacher": {"planner": {"horizon": 24}}}},
        {"methods": {"psrl": {"version": 99}}},
    ],
)
def test_results_of_other_settings_are_refused(repository, change):
    folder, _ = repository(NAMES)
    params = apply_profile(yaml.safe_load((folder / "params.yaml").read_text()), change)
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    with pytest.raises(ConfigError, match=r"the results of reacher-oracle-psrl are not what params\.yaml lists"):
        Study.load()


def test_an_edited_return_is_refused(repository):
    folder, _ = repository(NAMES)
    path = folder / "results" / "runs" / "reacher-oracle-psrl.csv"
    header, row, *rest = path.read_text().splitlines()
    cells = row.split(",")
    path.write_text("\n".join([header, ",".join([*cells[:7], "0.0", cells[8]]), *rest, ""]))
    with pytest.raises(ConfigError, match=r"reacher-oracle-psrl are not what .* or changed since"):
        Study.load()


def test_one_curve_is_listed_once(repository):
    folder, _ = repository(NAMES)
    params = yaml.safe_load((folder / "params.yaml").read_text())
    params["experiments"]["again"] = params["experiments"]["reacher-oracle-psrl"]
    synthetic.publish(folder, params)
    with pytest.raises(ConfigError, match="lists one curve twice, as reacher-oracle-psrl and as again"):
        Study.load()


def test_a_model_free_curve_belongs_to_both_reward_settings(repository):
    repository(NAMES)
    study = Study.load()
    assert study.find(REACHER, "sac") is study.find(FIGURE_2[4], "sac")
    assert "sac" in study.listed(FIGURE_2[4]) and "sac" not in study.listed(REACHER), "and is counted once"


def test_methods_are_judged_after_the_same_experience_and_regret_counts_what_was_collected(repository):
    repository(NAMES)
    study = Study.load()
    actor, planner = study.find(REACHER, "mbpo"), study.find(REACHER, "psrl")
    after = actor.collected + 0.05 * np.abs(actor.collected)  # the invented greedy episode after each episode
    np.testing.assert_allclose(actor.returns[:, 1:], after[:, :-1], err_msg="counts for the episode that follows")
    np.testing.assert_array_equal(actor.returns[:, 0], actor.collected[:, 0])
    assert planner.returns is planner.collected
    kinds = [sorted(file.parent.name for file in trials.files) for trials in (actor, planner)]
    assert kinds == [["metrics", "provenance", "runs"], ["provenance", "runs"]]


def test_a_batch_shares_its_processor_time(repository):
    repository(NAMES)
    study = Study.load()
    planner, actor = study.find(REACHER, "psrl"), study.find(REACHER, "mbpo")
    np.testing.assert_allclose(planner.cpu_seconds, planner.seconds / 5 * 0.95)
    np.testing.assert_allclose(actor.cpu_seconds, actor.seconds * 0.95)


def test_changed_settings_are_described_relative_to_the_published_ones(repository):
    repository(NAMES)
    study = Study.load()
    assert study.find(REACHER, "psrl", "a new sample each step").name == "ablation-reacher-step"
    assert study.find(REACHER, "psrl", "feature layer 4d").name == "ablation-reacher-width-double"
    assert study.is_planned(REACHER, "psrl", "prior sd x0.1")
    curves = {curve for claim in claims.claims() for c in claim.comparisons for curve in (c.ours, c.theirs)}
    for c in curves:
        known = study.find(c.setting, c.method, c.variation) or study.is_planned(c.setting, c.method, c.variation)
        assert known, f"a claim names {c} on {c.setting}: it is listed"
    assert published.describe({}, None) == ""


def test_toy_sizes_make_no_other_curve(repository):
    folder, _ = repository(NAMES)
    params = yaml.safe_load((folder / "params.yaml").read_text())
    for values in params["experiments"].values():
        if values["method"] == "psrl":
            values["set"] = values.get("set", {}) | {"planner": {"population": 20, "elites": 4}, "batch": 8}
    synthetic.publish(folder, params)
    study = Study.load()
    assert study.find(REACHER, "psrl").name == "reacher-oracle-psrl"
    assert study.find(REACHER, "psrl", "a new sample each step").name == "ablation-reacher-step"


def test_there_is_no_score_without_both_references_or_with_a_bad_oracle(repository, monkeypatch):
    repository([name for name in NAMES if name != "reacher-oracle"])
    study = Study.load()
    assert study.scale(REACHER) is None and study.unscaled(REACHER) == "no reference run yet"
    assert [str(line) for line in tables.lines(study) if line.setting == REACHER] == ["no reference run yet"] * 4
    low, high = synthetic.LEVELS["reacher"]
    monkeypatch.setitem(synthetic.LEVELS, "reacher", (low, low - abs(high)))
    repository(NAMES)
    assert Study.load().unscaled(REACHER) == "the oracle planner is no better than a policy that knows nothing"


def test_tables_tell_every_planned_method_once_and_the_paper_s_numbers(repository):
    folder, _ = repository(NAMES)
    study = Study.load()
    table = tables.write(study)
    assert len({(line.setting, line.method) for line in table}) == len(table)
    assert sum(line.status == "published" for line in table) == 5  # the Reacher's four and its SAC
    text = (folder / "results" / "tables" / "convergence.csv").read_text()
    paper_numbers = {float(row.split(",")[5]) for row in text.splitlines()[1:] if row.split(",")[5]}
    assert paper_numbers == set(paper.CONVERGENCE.values())
    shown = (folder / "results" / "tables" / "convergence.md").read_text()
    assert "| Pusher (r) | 146.6 | not yet run |" in shown and "window of 3 episodes" in shown
    before = {file.name: file.read_bytes() for file in (folder / "results" / "tables").iterdir()}
    tables.write(Study.load())
    assert before == {file.name: file.read_bytes() for file in (folder / "results" / "tables").iterdir()}


def test_a_new_experiment_leaves_the_other_numbers_as_they_are(repository):
    repository(NAMES)
    before = {(line.setting, line.method): str(line) for line in tables.lines(Study.load())}
    repository([*NAMES, "reacher-learned-psrl"])
    after = {(line.setting, line.method): str(line) for line in tables.lines(Study.load())}
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {(FIGURE_2[4], "psrl")}


def test_panels_and_words_say_what_is_missing(repository):
    repository(NAMES)
    study = Study.load()
    fig = curves.figure(study, FIGURE_2, columns=3)
    texts = [text.get_text() for ax in fig.axes for text in ax.texts]
    empty = [setting for setting in FIGURE_2 if not study.methods(setting)]
    assert texts.count("not yet run") == len(empty) == 4
    given, learned = (text.splitlines()[1:] for text in texts if text.startswith("not yet run:\n"))
    assert given == [LABELS["ddpg"]] and LABELS["mbpo"] in learned and LABELS["sac"] not in learned
    words = curves.alternative(study, FIGURE_2)
    assert all(str(setting) in words for setting in FIGURE_2)
    curves.plt.close(fig)


def test_a_figure_with_no_baseline_of_its_own_is_not_counted_as_won(repository):
    """SAC never sees the reward function: its curve belongs to the panel where the reward is learned."""
    repository(["reacher-oracle-psrl", "reacher-learned-sac", "reacher-random", "reacher-oracle"])
    study = Study.load()
    assert study.methods(REACHER, ("sac",)) and curves.message(study, [REACHER]).startswith("No panel has both")


def test_the_legend_tells_other_numbers_of_seeds_than_five(repository):
    folder, _ = repository(NAMES)
    params = yaml.safe_load((folder / "params.yaml").read_text())
    params["experiments"]["reacher-oracle-pets"]["seeds"] = [0, 1]
    synthetic.publish(folder, params)
    fig = curves.figure(Study.load(), FIGURE_2, columns=3)
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert "PETS (2 seeds)" in labels and "MPC-PSRL" in labels
    curves.plt.close(fig)


def test_a_shade_is_a_standard_deviation_and_covers_no_return_that_no_trial_had():
    skewed, even = [-2000.0, -40.0, -30.0, -35.0, -45.0], [-1.0, 1.0, 0.0, 0.0, 0.0]
    fig, ax = curves.plt.subplots()
    curves.spread(ax, np.arange(2), np.array([skewed, even]).T, "psrl")
    corners = ax.collections[0].get_paths()[0].vertices
    ends = [[f(corners[corners[:, 0] == x, 1]) for f in (np.min, np.max)] for x in (0, 1)]
    curves.plt.close(fig)
    np.testing.assert_allclose(ends[0], [np.mean(skewed) - np.std(skewed, ddof=1), max(skewed)])
    np.testing.assert_allclose(ends[1], [-np.std(even, ddof=1), np.std(even, ddof=1)])


def test_what_lasts_has_columns_of_its_own(repository):
    folder, _ = repository(NAMES)
    table = {(line.setting.task, line.method): line for line in tables.write(Study.load()) if line.summary}
    with open(folder / "results" / "tables" / "convergence.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["last_countable"]]
    assert len(rows) == len(table) == 5
    for row in rows:
        assert int(row["lasting_last_countable"]) == max(0, int(row["last_countable"]) - 3)
        lasting = table[row["task"], row["method"]].lasting
        assert float(row["lasting_mean"]) == pytest.approx(lasting.mean.estimate, abs=0.01)
