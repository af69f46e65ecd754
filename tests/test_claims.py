"""Verdicts follow from intervals, and intervals from published results."""

import numpy as np
import pytest
import synthetic

from psrl import claims
from psrl.claims import Comparison, Curve, judge
from psrl.config import experiment
from psrl.paper import FIGURE_2
from psrl.published import Study, Trials
from psrl.statistics import Interval

REACHER = FIGURE_2[1]


@pytest.mark.parametrize(
    ("interval", "relation", "verdict"),
    [
        ((0.2, 0.1, 0.3), "better", "yes"),
        ((0.2, -0.1, 0.5), "better", "undecided"),
        ((-0.01, -0.3, 0.3), "better", "undecided"),
        ((-0.2, -0.3, -0.1), "better", "no"),
        ((0.0, 0.0, 0.0), "better", "no"),
        ((0.02, -0.05, 0.09), "similar", "yes"),
        ((0.02, -0.05, 0.2), "similar", "undecided"),
        ((0.2, 0.15, 0.3), "similar", "no"),
        ((-0.2, -0.3, -0.15), "similar", "no"),
        ((0.5, 0.4, 0.6), "not worse", "yes"),
        ((-0.05, -0.2, 0.1), "not worse", "undecided"),
        ((-0.15, -0.2, -0.1), "not worse", "no"),
        ((0.2, np.nan, np.nan), "better", "undecided"),  # one trial
    ],
)
def test_an_interval_decides_a_verdict(interval, relation, verdict):
    assert judge(Interval(*interval), relation) == verdict


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ([], "not yet run"),
        (["not yet run", "not yet run"], "not yet run"),
        (["yes", "not yet run", "yes"], "yes"),
        (["no", "no"], "no"),
        (["yes", "no"], "partly"),
        (["yes", "undecided"], "partly"),
        (["undecided", "not yet run"], "undecided"),
        (["undecided", "no"], "no"),
        (["not planned", "not planned"], "not planned"),
        (["not planned", "not yet run"], "not yet run"),
        (["not planned", "yes"], "yes"),
    ],
)
def test_a_claim_is_what_its_comparisons_agree_on(verdicts, whole):
    assert claims.summarise(verdicts) == whole


def study(ours: np.ndarray, theirs: np.ndarray, scaled: bool = False) -> Study:
    """Two published curves on the Reacher, with or without the references of a score."""
    params = synthetic.complete()
    found = {}
    curves = {"reacher-oracle-psrl": ours, "reacher-oracle-pets": theirs}
    if scaled:  # an idle arm, which knows as little as a random one, loses about 180
        curves |= {"reacher-random": np.full((5, 5), -1500.0), "reacher-oracle": np.full((5, 1), -20.0)}
    for name, returns in curves.items():
        run = experiment(name, params)
        found[name] = Trials(name, run, returns, returns, np.ones_like(returns))
    return Study(found, {trials.name: trials.run for trials in found.values()}, dict.fromkeys(found, ""))


def finding(ours: np.ndarray, theirs: np.ndarray, scaled: bool = False, **options) -> claims.Finding:
    comparison = Comparison(Curve(REACHER, "psrl"), Curve(REACHER, "pets"), **options)
    return claims.examine(study(ours, theirs, scaled), comparison)


def test_swapping_the_methods_turns_the_difference_around():
    generator = np.random.default_rng(0)
    good, bad = generator.normal(-20, 5, (5, 40)), generator.normal(-60, 5, (5, 40))
    one, other = finding(good, bad), finding(bad, good)
    assert (one.verdict, other.verdict) == ("yes", "no")
    assert one.difference.estimate == pytest.approx(-other.difference.estimate)
    assert one.improvement.estimate == pytest.approx(1 - other.improvement.estimate)
    assert one.unit == "return", "without references there is no score"
    assert one == finding(good, bad), "the same every time"


def test_equal_methods_are_rarely_called_different():
    generator = np.random.default_rng(1)
    verdicts = [finding(*generator.normal(-20, 5, (2, 5, 40))).verdict for _ in range(30)]
    assert verdicts.count("yes") <= 4, "each errs on this side in a few cases of a hundred"


def test_what_needs_a_score_waits_for_the_references():
    flat = np.full((5, 40), -20.0)
    for options in ({"measure": "episodes"}, {"relation": "similar"}):
        found = finding(flat, flat, **options)
        assert (found.verdict, found.note) == ("not yet run", "no reference run yet")


def test_a_curve_that_has_not_converged_refutes_nothing_about_convergence():
    noise = np.random.default_rng(2).normal(0, 1, (2, 5, 40))
    best, slow = noise[0] - 25, noise[1] - np.linspace(180, 80, 40)
    options = {"scaled": True, "measure": "level", "relation": "not worse"}
    waiting = finding(slow, best, **options)
    assert waiting.difference.high < -claims.MARGIN
    assert (waiting.verdict, waiting.note) == ("undecided", "5 of 5 trials of MPC-PSRL have not converged")
    converged = finding(best - 8, best, **options | {"relation": "better"})
    assert converged.verdict == "no" and not converged.note


def test_to_match_a_curve_that_still_rises_confirms_nothing():
    noise = np.random.default_rng(2).normal(0, 1, (2, 5, 40))
    best, slow = noise[0] - 25, noise[1] - np.linspace(180, 80, 40)
    options = {"scaled": True, "measure": "level", "relation": "not worse"}
    matched = finding(slow - 3, slow, **options)  # lower, by less than the margin
    assert -claims.MARGIN < matched.difference.low and matched.difference.high < 0
    assert (matched.verdict, matched.note) == ("undecided", "5 of 5 trials of PETS have not converged")
    last = np.concatenate([slow[:, :-4], best[:, -4:] - 1], axis=1)  # ours has just converged, theirs long since
    assert finding(last, best, **options).verdict == "yes"


def test_nor_does_one_confirm_anything():
    noise = np.random.default_rng(2).normal(0, 1, (2, 5, 40))
    best, slow = noise[0] - 25, noise[1] - np.linspace(180, 80, 40)
    options = {"scaled": True, "measure": "level"}
    ahead = finding(best, slow, **options)
    assert ahead.difference.low > 0
    assert (ahead.verdict, ahead.note) == ("undecided", "5 of 5 trials of PETS have not converged")
    assert finding(best, best - 8, **options).verdict == "yes"
    alike = finding(slow, slow + 0.1, **options, relation="similar")
    assert alike.verdict == "undecided" and "5 of 5 trials of MPC-PSRL and 5 of 5 trials of PETS" in alike.note


def test_ties_of_censored_trials_refute_nothing():
    noise = np.random.default_rng(2).normal(0, 1, (2, 5, 40))
    slow, good = noise[0] - np.linspace(180, 80, 40), noise[1] - 25
    options = {"scaled": True, "measure": "episodes"}
    tied = finding(slow, slow, **options)
    assert (tied.verdict, tied.note) == ("undecided", "too few trials converge in 40 episodes")
    one = slow.copy()
    one[0] = good[0]
    assert finding(slow, one, **options).verdict == "undecided", "one of five is no difference yet"
    assert finding(slow, good, **options).verdict == "no"
    assert finding(good, good, **options).verdict == "no", "all converge at once: not sooner"


def test_what_nobody_has_planned_is_told_apart_from_what_is_not_yet_run():
    flat = np.full((5, 40), -20.0)
    theirs = [Curve(REACHER, "psrl-eb"), Curve(REACHER, "psrl-eb", "posterior mean")]
    names = ["reacher-oracle-psrl", "reacher-oracle-psrl-eb"]
    plan = {name: experiment(name, synthetic.complete()) for name in names}
    some = Study({names[0]: study(flat, flat).published[names[0]]}, plan, dict.fromkeys(plan, ""))
    found = [claims.examine(some, Comparison(Curve(REACHER, "psrl"), curve)) for curve in theirs]
    assert [finding.verdict for finding in found] == ["not yet run", "not planned"]
    assert "posterior mean" in found[1].note


def test_both_variants_are_asked_the_same_questions():
    published, evidence = claims.claims("psrl"), claims.claims("psrl-eb")
    assert [claim.text for claim in published] == [claim.text for claim in evidence]
    assert [len(claim.comparisons) for claim in published] == [len(claim.comparisons) for claim in evidence]
    assert {claim.where for claim in published} == {"5.2", "5.3", "5.3, implied", "4.1"}


def test_curves_of_different_length_are_compared_over_the_episodes_that_both_have(monkeypatch):
    params = synthetic.complete()
    params["experiments"]["reacher-oracle-psrl"]["episodes"] = 20
    params["experiments"]["reacher-oracle-pets"]["episodes"] = 40
    monkeypatch.setattr(synthetic, "complete", lambda: params)
    noise = np.random.default_rng(3).normal(0, 1, (2, 5, 40))
    ours, theirs = noise[0, :, :20] - 100, noise[1] - np.where(np.arange(40) < 20, 120, 25)
    assert finding(ours, theirs, scaled=True).verdict == "yes", "theirs is ahead only where ours has ended"
    found = finding(ours, theirs, scaled=True, measure="episodes")
    assert (found.verdict, found.note) == ("undecided", "too few trials converge in 20 episodes")


def test_a_claim_is_tested_by_what_it_says():
    for claim in claims.claims():
        measures = {c.measure for c in claim.comparisons}
        assert (measures == {"episodes"}) == ("fewer episodes" in claim.text), claim.text
        assert (measures == {"level"}) == ("at convergence" in claim.text), claim.text
        relations = {c.relation for c in claim.comparisons}
        assert (relations == {"similar"}) == ("alike" in claim.text), claim.text
    (harder,) = (claim for claim in claims.claims() if claim.text.startswith("Noise makes them harder"))
    for c in harder.comparisons:
        assert c.ours.setting.noise == 0 < c.theirs.setting.noise, "what is easier has to return more"
        assert (c.ours.method, c.ours.setting.task) == (c.theirs.method, c.theirs.setting.task)
