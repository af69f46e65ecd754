"""Films: the episodes a learner really had, written and read back."""

import numpy as np
import pytest
import tiny

from psrl import config, film
from psrl.learner import make_learner
from psrl.tasks import TASKS


@pytest.fixture
def run():
    values = {"task": "cartpole", "method": "psrl", "seeds": [3], "episodes": 3}
    return config.resolve(tiny.params(), **values)


def test_a_film_shows_the_first_and_the_last_episode_of_the_run(run):
    episodes = film.record(run)
    learner = make_learner(run)
    returns = [learner.episode().returns[0] for _ in range(run.episodes)]
    seen = learner.data["x"][0, :, : TASKS["cartpole"].state_dim].unflatten(0, (run.episodes, run.steps)).numpy()
    for key, number in ((film.FIRST, 0), (film.LAST, -1)):
        # The state after a step is the one before the next.
        np.testing.assert_allclose(episodes[key].states[0, :-1], seen[number, 1:], rtol=1e-5, atol=1e-6)
        assert episodes[key].returns[0] == pytest.approx(returns[number])


def test_a_film_is_read_back(run, tmp_path, monkeypatch):
    monkeypatch.setattr(film, "FOLDER", tmp_path)
    episodes = film.record(run)
    film.save(episodes, film.file("cartpole"))
    again = film.load("cartpole")
    assert list(again) == [film.FIRST, film.LAST]
    for key, episode in episodes.items():
        np.testing.assert_allclose(again[key].states, episode.states, atol=1e-6)
        np.testing.assert_allclose(again[key].rewards, episode.rewards, atol=1e-6)


def test_an_unknown_film_is_refused_with_the_valid_ones(capsys):
    assert film.main(["walker"]) == 2
    assert "film 'walker' is unknown; valid: cartpole, pendulum, reacher, pusher" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"method": "sac"}, {"episodes": 1}])
def test_a_film_that_cannot_be_made_is_refused(change):
    values = {"task": "cartpole", "method": "psrl", "seeds": [3], "episodes": 3} | change
    with pytest.raises(config.ConfigError, match="valid: psrl, psrl-eb, pets, at least 2"):
        film.record(config.resolve(tiny.params(), **values))


def test_a_film_not_made_yet_is_named_with_the_command_that_makes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(film, "FOLDER", tmp_path)
    with pytest.raises(config.ConfigError, match=r"python -m psrl\.film pusher"):
        film.load("pusher")
