"""The two arms: every number of their description, their kinematics, their motion and their rewards."""

import mujoco
import numpy as np
import pytest
import torch

from psrl.tasks import TASKS, arm, pusher, reacher
from psrl.tasks.rollout import advance, observe, physics_state, true_model

ARMS = ["reacher", "pusher"]
MODULES = {"reacher": reacher, "pusher": pusher}
RANGES = {
    "reacher": [(-2.2854, 1.714602), (-0.5236, 1.3963), (-3.9, 0.8), (-2.3213, 0), None, (-2.094, 0), None],
    "pusher": [(-2.2854, 2.0), (-0.5236, 1.3963), (-1.5, 1.7), (-2.3213, 0), (-1.5, 1.5), (-1.094, 0), (-1.5, 1.5)],
}
DAMPING = {"reacher": [10, 10, 0.1, 1, 0.1, 0.1, 0.1], "pusher": [1, 1, 0.1, 0.1, 0.1, 0.1, 0.1]}
# The shapes the arm is made of: capsules (length, radius) from shoulder to hand, then spheres (radius).
CAPSULES = {
    "reacher": [
        *[(0.6, 0.1), (0.2, 0.1), (0.2, 0.02), (0.4, 0.06), (0.04, 0.06), (0.2, 0.02), (0.321, 0.05), (0.04, 0.01)],
        *[(0.04, 0.01), (0.04, 0.05)],
        *2 * [(np.hypot(0.09137, 0.00495), 0.01), (0.09137, 0.01)],
    ],
    "pusher": [
        *[(0.6, 0.1), (0.2, 0.1), (0.2, 0.02), (0.4, 0.06), (0.04, 0.06), (0.2, 0.02), (0.291, 0.05), (0.04, 0.01)],
        *[(0.2, 0.02), (0.1, 0.02), (0.1, 0.02)],
    ],
}
SPHERES = {"reacher": [0.05, 0.05, 0.03, 0.03], "pusher": [0.05, 0.05, 0.03, 0.03, 0.01, 0.01]}
DENSITY = {"reacher": 1000, "pusher": 300}


@pytest.fixture
def env(request):
    made = TASKS[request.param].make()
    made.reset(seed=0)
    return made


both = pytest.mark.parametrize("env", ARMS, indirect=True)
only_reacher = pytest.mark.parametrize("env", ["reacher"], indirect=True)
only_pusher = pytest.mark.parametrize("env", ["pusher"], indirect=True)


def name_of(env) -> str:
    return env.spec.id.removeprefix("psrl/").removesuffix("-v0").lower()


@both
def test_joints_and_motors_have_the_numbers_of_the_description(env):
    name, model = name_of(env), env.unwrapped.model
    for joint, limits in enumerate(RANGES[name]):
        assert bool(model.jnt_limited[joint]) == (limits is not None)
        if limits is not None:
            np.testing.assert_allclose(model.jnt_range[joint], limits, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.dof_damping[:7], DAMPING[name])
    np.testing.assert_allclose(model.dof_armature[:7], 0.04)
    np.testing.assert_allclose(model.jnt_axis[:7], np.eye(3)[[2, 1, 0, 1, 0, 1, 0]])
    bound = TASKS[name].action_bound
    np.testing.assert_allclose(model.actuator_ctrlrange, [[-bound, bound]] * 7)
    assert model.nu == 7 and model.actuator_ctrllimited.all() and np.all(model.actuator_gear[:, 0] == 1)
    assert model.actuator_trnid[:, 0].tolist() == list(range(7))


@both
def test_options_are_those_of_the_description(env):
    name, option = name_of(env), env.unwrapped.model.opt
    assert option.timestep == 0.01 and option.iterations == 20 and not option.gravity.any()
    euler, rk4 = mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtIntegrator.mjINT_RK4
    assert option.integrator == {"reacher": rk4, "pusher": euler}[name]
    assert env.unwrapped.frame_skip == {"reacher": 2, "pusher": 4}[name]
    assert env.unwrapped.dt == pytest.approx({"reacher": 0.02, "pusher": 0.04}[name])


@both
def test_the_arm_weighs_what_its_shapes_do(env):
    name, model = name_of(env), env.unwrapped.model
    volume = sum(np.pi * r**2 * length + 4 / 3 * np.pi * r**3 for length, r in CAPSULES[name])
    volume += sum(4 / 3 * np.pi * r**3 for r in SPHERES[name])
    shoulder = model.body("shoulder_pan").id
    assert model.body_subtreemass[shoulder] == pytest.approx(DENSITY[name] * volume, rel=1e-9)


@both
def test_shapes_touch_only_where_the_description_says(env):
    model = env.unwrapped.model
    touching = np.flatnonzero((model.geom_contype > 0) | (model.geom_conaffinity > 0))
    assert len(touching) == {"reacher": 0, "pusher": 5}[name_of(env)]  # the table, three bars of the hand, the object
    assert np.all(model.geom_condim == 1)
    np.testing.assert_allclose(model.geom_margin, 0.002)
    np.testing.assert_allclose(
        model.geom_friction, [[{"reacher": 0.5, "pusher": 0.8}[name_of(env)], 0.1, 0.1]] * model.ngeom
    )


@only_reacher
def test_the_goals_coordinates_are_its_position(env):
    inner = env.unwrapped
    assert inner.model.nq == 10
    np.testing.assert_allclose(inner.init_qpos, [0] * 7 + [0, 0.25, 0])
    qpos = np.array([0.0] * 7 + [0.1, -0.2, 0.3])
    inner.set_state(qpos, np.zeros(10))
    np.testing.assert_allclose(inner.data.body("target").xpos, qpos[7:], atol=1e-15)
    np.testing.assert_allclose(inner.goal(), qpos[7:])
    assert not inner.model.dof_armature[7:].any() and not inner.model.dof_damping[7:].any()


@only_pusher
def test_object_and_goal_slide_along_y_then_x(env):
    inner = env.unwrapped
    assert inner.model.nq == 11
    qpos = np.array([0.0] * 7 + [0.1, 0.2, -0.3, -0.4])
    inner.set_state(qpos, np.zeros(11))
    np.testing.assert_allclose(inner.data.body("object").xpos, [0.45 + 0.2, -0.05 + 0.1, -0.275], atol=1e-15)
    np.testing.assert_allclose(inner.data.body("goal").xpos, [0.45 - 0.4, -0.05 - 0.3, -0.323], atol=1e-15)
    np.testing.assert_allclose(inner.goal(), inner.data.body("goal").xpos)
    np.testing.assert_allclose(inner.model.jnt_range[7:], [[-10.3213, 10.3]] * 4)
    np.testing.assert_allclose(inner.model.dof_damping[7:], 0.5)


@both
def test_starts_are_distributed_as_described(env):
    inner, name = env.unwrapped, name_of(env)
    starts = []
    for _ in range(1500):
        env.reset()
        starts.append(np.concatenate([inner.data.qpos, inner.data.qvel]))
    starts = np.array(starts)
    drawn = slice(7, 10) if name == "reacher" else slice(7, 9)
    mean, sd = ([0, 0.25, 0], 0.1) if name == "reacher" else ([-0.25, 0.15], 0.025)
    assert np.all(np.abs(starts[:, drawn].mean(0) - mean) < 5 * sd / np.sqrt(1500))
    assert np.all(np.abs(starts[:, drawn].std(0) / sd - 1) < 5 / np.sqrt(3000))
    speeds = starts[:, inner.model.nq :]
    if name == "reacher":
        assert not starts[:, :7].any() and not speeds.any()
    else:
        assert not starts[:, :7].any() and not starts[:, 9:11].any() and not speeds[:, 7:].any()
        assert np.all(np.abs(speeds[:, :7]) <= 0.005) and speeds[:, :7].max() > 0.0049 and speeds[:, :7].min() < -0.0049


def random_angles(count: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-np.pi, np.pi, (count, 7))


@both
def test_the_analytic_hand_is_where_mujoco_puts_it(env):
    inner, module = env.unwrapped, MODULES[name_of(env)]
    angles = random_angles(200)
    computed = arm.end_effector(torch.from_numpy(angles), module.ARM.base, module.ARM.reach).numpy()
    for angle, position in zip(angles, computed, strict=True):
        inner.set_state(np.concatenate([angle, inner.init_qpos[7:]]), np.zeros(inner.model.nv))
        if module is reacher:
            tips = [inner.data.body(f"{side}_finger_tip").xpos for side in ("left", "right")]
            actual = np.mean(tips, axis=0)
        else:
            actual = inner.data.body("tips_arm").xipos
        np.testing.assert_allclose(position, actual, rtol=0, atol=1e-12)


def test_the_stretched_reacher_ends_where_the_description_adds_up():
    hand = arm.end_effector(torch.zeros(7, dtype=torch.float64), reacher.ARM.base, reacher.ARM.reach)
    np.testing.assert_allclose(hand, [0.1 + 0.4 + 0.321 + 0.16828, -0.188, 0.0], rtol=0, atol=1e-12)


@only_reacher
def test_reachers_observation_and_reward_after_the_step(env):
    inner, rng = env.unwrapped, np.random.default_rng(0)
    for _ in range(20):
        inner.set_state(
            np.concatenate([rng.uniform(-1, 0, 7), rng.normal(0, 0.2, 3)]), np.append(rng.normal(0, 1, 7), [0] * 3)
        )
        action = rng.uniform(-20, 20, 7)
        observation, reward, *_ = env.unwrapped.step(action)
        np.testing.assert_array_equal(observation, [*inner.data.qpos[:10], *inner.data.qvel[:7]])
        tips = [inner.data.body(f"{side}_finger_tip").xpos for side in ("left", "right")]
        miss = np.mean(tips, axis=0) - inner.data.qpos[7:]
        assert reward == pytest.approx(-np.sum(miss**2) - 0.01 * np.sum(action**2), abs=1e-10)


@only_pusher
def test_pushers_observation_after_and_reward_before_the_step(env):
    inner, rng = env.unwrapped, np.random.default_rng(0)
    for _ in range(20):
        qpos = np.concatenate([rng.uniform(-1, 0, 7), rng.normal(0, 0.2, 4)])
        inner.set_state(qpos, np.append(rng.normal(0, 1, 7), [0] * 4))
        tips, puck, goal = (inner.data.body(n).xipos.copy() for n in ("tips_arm", "object", "goal"))
        action = rng.uniform(-2, 2, 7)
        observation, reward, *_ = env.unwrapped.step(action)
        expected = -1.25 * np.abs(puck - goal).sum() - 0.5 * np.abs(puck - tips).sum() - 0.1 * np.sum(action**2)
        assert reward == pytest.approx(expected, abs=1e-12)
        np.testing.assert_array_equal(observation[:14], [*inner.data.qpos[:7], *inner.data.qvel[:7]])
        mujoco.mj_forward(inner.model, inner.data)
        np.testing.assert_allclose(observation[14:17], inner.data.body("tips_arm").xipos, atol=1e-14)
        np.testing.assert_allclose(observation[17:], inner.data.body("object").xipos, atol=1e-14)


def inertia_matrix(inner) -> np.ndarray:
    """M [V, V], column by column: the force that gives joint i alone a unit acceleration, at rest."""
    data = mujoco.MjData(inner.model)
    data.qpos[:] = inner.data.qpos
    mujoco.mj_forward(inner.model, data)
    matrix = np.zeros((inner.model.nv, inner.model.nv))
    for i, unit in enumerate(np.eye(inner.model.nv)):
        mujoco.mj_mulM(inner.model, data, matrix[i], unit)
    return matrix


def kinetic_energy(inner) -> float:
    return 0.5 * float(inner.data.qvel @ inertia_matrix(inner) @ inner.data.qvel)


@both
def test_an_undriven_arm_only_loses_energy(env):
    inner, rng = env.unwrapped, np.random.default_rng(0)
    middle = np.array([0.3, 0.3, -0.5, -1.0, 0.0, -0.5, 0.0])
    inner.set_state(
        np.concatenate([middle, inner.data.qpos[7:]]), np.append(rng.normal(0, 0.3, 7), np.zeros(inner.model.nv - 7))
    )
    energies = [kinetic_energy(inner)]
    for _ in range(30):
        inner.step(np.zeros(7))
        energies.append(kinetic_energy(inner))
    assert np.all(np.diff(energies) < 0) and energies[-1] < 0.5 * energies[0]


@both
def test_motors_and_dampers_account_for_the_energy(env):
    """Over a short stretch the kinetic energy gains (torque - damping x speed) x speed x time."""
    inner, rng = env.unwrapped, np.random.default_rng(1)
    middle = np.array([0.3, 0.3, -0.5, -1.0, 0.0, -0.5, 0.0])
    for _ in range(5):
        speed = rng.normal(0, 0.5, 7)
        inner.set_state(np.concatenate([middle, inner.data.qpos[7:]]), np.append(speed, np.zeros(inner.model.nv - 7)))
        torque = rng.uniform(-1, 1, 7) * TASKS[name_of(env)].action_bound / 4
        inner.model.opt.timestep = 1e-5
        before = kinetic_energy(inner)
        inner.step(torque)
        gained = kinetic_energy(inner) - before
        power = np.sum((torque - inner.model.dof_damping[:7] * speed) * speed)
        assert gained == pytest.approx(power * 1e-5 * inner.frame_skip, rel=2e-2)
        inner.model.opt.timestep = 0.01


@only_pusher
def test_the_hand_moves_the_object_only_by_touching_it(env):
    inner = env.unwrapped
    inner.set_state(inner.data.qpos.copy(), np.zeros(11))
    start = inner.data.qpos[7:9].copy()
    for _ in range(20):
        env.step(np.zeros(7))
    np.testing.assert_allclose(inner.data.qpos[7:9], start, atol=1e-12)
    # Put the object into the hand's U, at its height, and swing the arm about the shoulder.
    reach = np.array([0.0, 0.35, 0.0, -0.016, 0.0, 0.0, 0.0])
    tips = arm.end_effector(torch.from_numpy(reach), pusher.ARM.base, pusher.ARM.reach).numpy()
    x, y, z = tips - np.array(pusher.OBJECT)
    assert abs(z) < 0.01
    inner.set_state(np.concatenate([reach, [y, x - 0.02, 0, 0]]), np.zeros(11))
    deepest = 0.0
    for _ in range(20):
        env.step(np.array([2.0, 0, 0, 0, 0, 0, 0]))
        deepest = min([deepest, *(contact.dist for contact in inner.data.contact)])
    assert inner.data.qpos[7] - y > 0.2  # the hand sweeps to the left, along y
    assert deepest > -0.02  # and does not sink into the object
    np.testing.assert_array_equal(inner.data.qpos[9:11], 0.0)


@only_pusher
def test_contacts_weigh_the_armature_as_mujocos_general_rule_does(env):
    """The rule: the mean diagonal of J M^-1 J^T, from the full inertia matrix with its armature."""
    inner = env.unwrapped
    inverse = np.linalg.inv(inertia_matrix(inner))
    np.testing.assert_allclose(inner.model.dof_invweight0[7:], np.diag(inverse)[7:], rtol=1e-9)
    for body, first in (("object", 7), ("goal", 9)):
        jacobian = np.zeros((3, 11))
        mujoco.mj_jacBodyCom(inner.model, inner.data, jacobian, None, inner.model.body(body).id)
        assert np.flatnonzero(jacobian.any(axis=0)).tolist() == [first, first + 1]
        mean = np.trace(jacobian @ inverse @ jacobian.T) / 3
        np.testing.assert_allclose(inner.model.body(body).invweight0, [mean, 0], rtol=1e-9)


@both
def test_many_arms_advance_as_the_environment_does_and_leave_it_alone(env):
    name = name_of(env)
    actions = TASKS[name].action_bound * np.random.default_rng(0).uniform(-1.2, 1.2, (20, 7))  # some beyond the box
    for action in actions:
        before = physics_state(env)
        together = advance(env, np.stack([before] * 20), actions)
        np.testing.assert_array_equal(physics_state(env), before)
        observation = env.step(action)[0]
        alone = together[actions.tolist().index(action.tolist())]
        np.testing.assert_allclose(alone, physics_state(env), rtol=0, atol=1e-8)
        np.testing.assert_allclose(observe(env, torch.from_numpy(alone)).numpy(), observation, rtol=0, atol=1e-8)
    assert np.ptp(together, axis=0)[:7].min() > 0


@both
def test_the_planners_true_model_steps_like_the_environment(env):
    name = name_of(env)
    other = TASKS[name].make()
    other.reset(seed=5)
    step, reward = true_model([env, other])
    bound, generator = TASKS[name].action_bound, torch.Generator().manual_seed(0)
    state = torch.from_numpy(np.stack([physics_state(env), physics_state(other)]))[:, None].expand(-1, 4, -1)
    for _ in range(5):
        action = bound * (2 * torch.rand(2, 4, 7, generator=generator) - 1)
        following = step(state, action)
        values = reward(state, action, following)
        assert values.shape == (2, 4)
        observation, value, *_ = other.step(action[1, 0].numpy())
        np.testing.assert_allclose(observe(other, following)[1, 0].numpy(), observation, rtol=0, atol=1e-7)
        assert float(values[1, 0]) == pytest.approx(value, abs=1e-5)
        state = following


@both
def test_an_episode_is_that_of_mujocos_own_steps(env):
    inner = env.unwrapped
    twin = mujoco.MjData(inner.model)
    env.reset(seed=0)
    twin.qpos[:], twin.qvel[:] = inner.data.qpos, inner.data.qvel
    for action in TASKS[name_of(env)].action_bound * np.random.default_rng(0).uniform(-1, 1, (150, 7)):
        env.step(action)
        twin.ctrl[:] = action
        mujoco.mj_step(inner.model, twin, inner.frame_skip)
    np.testing.assert_allclose(twin.qpos, inner.data.qpos, rtol=0, atol=1e-6)
