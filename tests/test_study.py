"""The regret studies refuse what they would otherwise ignore or stumble over."""

import pytest

from psrl.config import read_params
from psrl.theory import study


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("lqr", {"fixed": {"prior_sd_a": 0.2}}, "theory.lqr.fixed holds 'prior_sd_a'; valid for lqr: states, controls"),
        ("bump", {"fixed": {"prior_sd_A": 0.2}}, "theory.bump.fixed holds 'prior_sd_A'; valid for bump: controls"),
        ("bandit", {"fixed": {"controls": 2}}, "theory.bandit.fixed holds 'controls'; valid for bandit: nothing"),
        ("lqr", {"fixed": 5}, "theory.lqr.fixed is 5; valid: "),
        ("bandit", {"vary": "horizon"}, "theory.bandit.vary is 'horizon'; valid for bandit: dimension"),
        ("chain", {"vary": "dimension"}, "theory.chain.vary is 'dimension'; valid for chain: horizon"),
    ],
)
def test_an_impossible_study_is_one_sentence_and_exit_code_2(name, change, complaint, monkeypatch, tmp_path, capsys):
    params = read_params()
    params["theory"][name] |= change
    monkeypatch.setattr(study, "read_params", lambda: params)
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    assert study.main([name]) == 2
    err = capsys.readouterr().err
    assert complaint in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_every_study_of_the_repository_is_valid():
    for name in read_params()["theory"]:
        study.load(name)
