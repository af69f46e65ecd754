"""The four control tasks of the paper (Section 5).

`register_all` makes them available to Gymnasium under `psrl/...` without importing torch or MuJoCo; `Task` and
`TASKS`, which need both, are loaded on first use.
"""

import gymnasium

STEPS = {"Cartpole": 200, "Pendulum": 200, "Reacher": 150, "Pusher": 150}


def register_all() -> None:
    """Register the four environments; episodes truncate after the paper's number of steps."""
    for name, steps in STEPS.items():
        gymnasium.register(
            id=f"psrl/{name}-v0",
            entry_point=f"psrl.tasks.{name.lower()}:{name}Env",
            max_episode_steps=steps,
        )


def __getattr__(name: str):
    if name in ("TASKS", "Task"):
        from psrl.tasks import task

        return getattr(task, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
