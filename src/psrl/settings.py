"""Every setting of every method: frozen, documented, with the values that are valid.

A class here is filled from params.yaml by :mod:`psrl.config`. A field that is itself a group (``planner``, ``network``,
``member``, ``epochs``, ``bayes``, ``rollout``) is set per task, the others per method.
"""

from dataclasses import dataclass, field
from typing import Any, Literal


def setting(doc: str, low: float | None = None, high: float | None = None, positive: bool = False) -> Any:
    """A field with its meaning and its valid range (``positive`` excludes zero)."""
    return field(metadata={"doc": doc, "low": low, "high": high, "positive": positive})


@dataclass(frozen=True)
class Planner:
    """The cross-entropy method (Section 4.2 and the appendix tables)."""

    population: int = setting("action sequences per iteration", low=2)
    elites: int = setting("best sequences the distribution is refitted to", low=1)
    iterations: int = setting("refits per plan", low=1)
    horizon: int = setting("steps a plan looks ahead (tau)", low=1)
    smoothing: float = setting("share of the old mean and variance kept at a refit", low=0, high=0.999)
    initial_variance: float = setting("variance of every action at the start of a plan", high=1e6, positive=True)
    tolerance: float = setting("a trial whose largest variance falls below this keeps its plan", low=0)

    def problem(self) -> str | None:
        if self.elites > self.population:
            return f"elites is {self.elites}; valid: at most population, {self.population}"
        return None


@dataclass(frozen=True)
class Network:
    """The multilayer perceptron whose penultimate layer is the feature map phi (Section 4.1)."""

    layers: int = setting("hidden layers before the penultimate one", low=1)
    width: int = setting("units of each of them", low=1)
    decay: tuple[float, float, float] = setting("L2 penalty of the first / hidden / last two layers", low=0)


@dataclass(frozen=True)
class Member:
    """One network of an ensemble (PETS, MBPO): hidden layers all equally wide, none of them a narrow feature layer."""

    layers: int = setting("hidden layers", low=1)
    width: int = setting("units of each of them", low=1)
    decay: tuple[float, float, float] = setting("L2 penalty of the first / hidden / last two layers", low=0)


@dataclass(frozen=True)
class Epochs:
    """Passes over the data each episode."""

    dynamics: int = setting("of the dynamics network", low=1)
    reward: int = setting("of the reward network", low=1)


@dataclass(frozen=True)
class Bayes:
    """The published scales of the Bayesian last layer, per task."""

    prior_sd: float = setting("prior sd of every last-layer weight (Sigma_p = prior_sd^2 I)", high=1e6, positive=True)
    noise_sd: float = setting("sd of the observation noise sigma", high=1e6, positive=True)


@dataclass(frozen=True)
class Rollout:
    """MBPO's schedule: the length of model rollouts grows linearly with the episode."""

    first_length: int = setting("length up to first_episode", low=1)
    last_length: int = setting("length from last_episode on", low=1)
    first_episode: int = setting("episode in which the growth begins", low=1)
    last_episode: int = setting("episode in which it ends", low=1)

    def length(self, episode: int) -> int:
        """Of the rollouts in ``episode``, counted from 1; between whole numbers the smaller, as in the original."""
        span = max(1, self.last_episode - self.first_episode)
        share = min(max(episode - self.first_episode, 0), span) / span
        return int(self.first_length + share * (self.last_length - self.first_length))

    def problem(self) -> str | None:
        if self.last_episode < self.first_episode:
            return f"last_episode is {self.last_episode}; valid: at least first_episode, {self.first_episode}"
        return None


@dataclass(frozen=True)
class PSRL:
    """MPC-PSRL, Algorithm 1."""

    version: int = setting("raised whenever the numbers the method produces change", low=1)
    scales: Literal["published", "standardised", "evidence"] = setting(
        "published: raw targets, the task's prior and noise sd; standardised: standardised targets, the same sds; "
        "evidence: standardised targets, both sds by evidence"
    )
    sample: Literal["episode", "step", "mean"] = setting("when the posterior is sampled; mean: never, its mean is used")
    particles: int = setting("noisy rollouts averaged per candidate", low=1)
    penultimate: float = setting("width of the feature layer as a multiple of d = ds + da", positive=True)
    learning_rate: float = setting("Adam's step size", positive=True)
    batch: int = setting("rows per gradient step", low=1)
    planning_reward: Literal["authors", "honest"] = setting(
        "which oracle the planner is given; they differ on Cartpole"
    )
    planner: Planner = setting("the cross-entropy method")
    network: Network = setting("the feature networks")
    epochs: Epochs = setting("their training")
    bayes: Bayes = setting("the published scales")


@dataclass(frozen=True)
class PETS:
    """Probabilistic ensembles with trajectory sampling (Chua et al., 2018)."""

    version: int = setting("raised whenever the numbers the method produces change", low=1)
    ensemble: int = setting("networks", low=1)
    particles: int = setting("rollouts averaged per candidate; the networks share them evenly", low=1)
    propagation: Literal["member", "step"] = setting(
        "a particle keeps its network along a rollout, or draws one each step"
    )
    learning_rate: float = setting("Adam's step size", positive=True)
    batch: int = setting("rows per gradient step", low=1)
    planning_reward: Literal["authors", "honest"] = setting(
        "which oracle the planner is given; they differ on Cartpole"
    )
    planner: Planner = setting("the cross-entropy method, as for MPC-PSRL")
    member: Member = setting("one network of the ensemble")
    epochs: Epochs = setting("its training, as for MPC-PSRL; there is no reward network")

    def problem(self) -> str | None:
        rows = self.planner.population * self.particles
        if rows % self.ensemble:
            return f"ensemble is {self.ensemble}; valid: a divisor of population x particles, {rows}"
        return None


@dataclass(frozen=True)
class ModelFree:
    """What SAC and DDPG have in common in the public code the authors used; through stable-baselines3 here."""

    version: int = setting("raised whenever the numbers the method produces change", low=1)
    width: int = setting("units of each of the two hidden layers", low=1)
    learning_rate: float = setting("of actor and critic", positive=True)
    batch: int = setting("transitions per update", low=1)
    replay: int = setting("transitions kept", low=1)
    discount: float = setting("gamma", low=0, high=1)
    random_steps: int = setting("environment steps with random actions at the start", low=0)
    train_after: int = setting("environment steps before the first update", low=0)


@dataclass(frozen=True)
class SAC(ModelFree):
    """Soft actor-critic."""

    entropy: float = setting("fixed entropy weight; 0 lets the library tune it", low=0)


@dataclass(frozen=True)
class DDPG(ModelFree):
    """Deep deterministic policy gradient."""

    action_noise: float = setting("sd of the exploration noise, in the units of the action", low=0)


@dataclass(frozen=True)
class MBPO:
    """Model-based policy optimisation (Janner et al., 2019): SAC trained mostly on short model rollouts."""

    version: int = setting("raised whenever the numbers the method produces change", low=1)
    ensemble: int = setting("networks", low=1)
    rollouts: int = setting("model rollouts per environment step, all begun when the model is fitted", low=1)
    updates: int = setting("policy updates per environment step", low=1)
    real_share: float = setting("share of real transitions in a policy batch", low=0, high=1)
    retrain_every: int = setting("environment steps between model fits, counted within an episode", low=1)
    model_updates: int = setting("gradient steps of a model fit, rounded up to whole passes over the data", low=1)
    learning_rate: float = setting("Adam's step size for the model", positive=True)
    batch: int = setting("rows per gradient step of the model", low=1)
    policy_width: int = setting("units of each of the policy's two hidden layers", low=1)
    policy_learning_rate: float = setting("of actor and critic", positive=True)
    policy_batch: int = setting("transitions per policy update", low=1)
    discount: float = setting("gamma", low=0, high=1)
    entropy: float = setting("fixed entropy weight; 0 lets the library tune it", low=0)
    member: Member = setting("one network of the ensemble")
    rollout: Rollout = setting("length of model rollouts")

    def problem(self) -> str | None:
        if self.rollouts % self.ensemble:
            return f"rollouts is {self.rollouts}; valid: a multiple of ensemble, {self.ensemble}"
        return None


@dataclass(frozen=True)
class Random:
    """Uniformly random actions; 0 of the normalised score where doing nothing is worse (`psrl.convergence`)."""

    version: int = setting("raised whenever the numbers the method produces change", low=1)


@dataclass(frozen=True)
class Oracle:
    """The same planner on the true, noise-free dynamics and reward: 1 of the normalised score."""

    version: int = setting("raised whenever the numbers the method produces change", low=1)
    planning_reward: Literal["authors", "honest"] = setting(
        "which oracle the planner is given; they differ on Cartpole"
    )
    planner: Planner = setting("the cross-entropy method, as for MPC-PSRL")


METHODS: dict[str, type] = {
    "psrl": PSRL,
    "psrl-eb": PSRL,
    "pets": PETS,
    "mbpo": MBPO,
    "sac": SAC,
    "ddpg": DDPG,
    "random": Random,
    "oracle": Oracle,
}
