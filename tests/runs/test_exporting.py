"""`rove export`: exported policies take the actions of the run's own greedy policy, in a process in
which rove and JAX cannot be imported."""

import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest
from tests.helpers import SMALL

import rove
from rove.cli.main import main
from rove.environments.action_masks import KEY
from rove.errors import ConfigError
from rove.runs.exporting import export

ACT = """
import sys
sys.modules.update(dict.fromkeys(("rove", "jax", "jaxlib", "equinox")))
folder, with_onnx = sys.argv[1], sys.argv[2] == "onnx"
sys.path.insert(0, folder)
import numpy as np
from policy import ExportedPolicy, encode
act = ExportedPolicy()
with np.load(folder + "/given.npz") as file:
    given = dict(file)
xs, masks = given["xs"], given.get("masks")
actions = [act(x, None if masks is None else masks[i]) for i, x in enumerate(xs)]
np.testing.assert_allclose(act.batch(xs, masks), actions, rtol=1e-5, atol=1e-6)
result = {"numpy": np.stack(actions)}
if with_onnx:
    import onnxruntime
    session = onnxruntime.InferenceSession(folder + "/policy.onnx")
    inputs = {"observation": np.stack([encode(act.about["observation"], x) for x in xs])}
    if masks is not None:
        inputs["action_mask"] = masks.astype(bool)
    (result["onnx"],) = session.run(["action"], inputs)
for name in ("rove", "jax", "jaxlib", "equinox"):
    assert sys.modules[name] is None
np.savez(folder + "/taken.npz", **result)
"""
TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
CASES = {
    "compiled": ("dqn", "cartpole", {}),
    "codes": ("ge", "gym/FrozenLake-v1", {}),
    "normalised": ("noisynet", "gym/CartPole-v1", {"normalise": True}),
    "categorical": ("c51", "chain-5", {}),
    "quantiles": ("qr_dqn", "cartpole", {}),
    "ensemble": ("bootstrapped_dqn", "cartpole", {}),
    "priors": ("ige", "cartpole", {}),
    "continuous": ("ddpg", "gym/Pendulum-v1", {}),
    "masks": ("dqn", f"gym/{TAXI}", {}),
    "frames": ("dqn", "gym/Acrobot-v1", {"frame_stack": 3}),
    "images": ("dqn", "gymnax/Breakout-MinAtar", {}),
}
QUICK = "compiled"


def trained(case):
    agent, name, options = CASES[case]
    if name.startswith("gymnax/"):
        pytest.importorskip("gymnax")
    task = rove.make(name, **options)
    settings = {key: value for key, value in SMALL.items() if key != "hidden"}
    return rove.train(agent, task, steps=60, progress=False, hidden=(8, 8), **settings)


def observations(run, case, count=40):
    """Observations as a user has them: samples of the environment's space, and masks if it has
    them."""
    name, random = CASES[case][1], np.random.default_rng(0)
    task = run.config.environment
    if not name.startswith("gym/"):
        shape = (count, task.observation_size)
        return random.integers(2, size=shape) if task.image else random.normal(size=shape), None
    env = gymnasium.make(name.removeprefix("gym/"))
    space = env.observation_space
    space.seed(0)
    xs = [space.sample() for _ in range(count)]
    if space.shape:
        xs = [np.clip(x, -3, 3) for x in xs]  # velocities of CartPole are unbounded
    if CASES[case][2].get("frame_stack"):
        xs = [np.stack(xs[i : i + 3]) for i in range(count - 2)]
    masks = random.random((len(xs), 6)) < 0.6 if case == "masks" else None
    if masks is not None:
        masks[:, 0] |= ~masks.any(axis=1)
        masks = masks.astype(np.int8)
    return np.stack(xs), masks


def taken(folder, xs, masks, onnx):
    """The actions of the exported policy, in another process."""
    given = {"xs": xs} | ({} if masks is None else {"masks": masks})
    np.savez(folder / "given.npz", **given)
    words = [sys.executable, "-c", ACT, str(folder), "onnx" if onnx else "numpy"]
    subprocess.run(words, check=True, timeout=120)
    with np.load(folder / "taken.npz") as file:
        return dict(file)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_exported_policies_act_as_the_run_does(tmp_path, case):
    run = trained(case)
    export(run, tmp_path, formats=("numpy", "onnx"))
    xs, masks = observations(run, case)
    act = run.policy(kind="mean")
    expected = [act(x, None if masks is None else masks[i]) for i, x in enumerate(xs)]
    assert len(np.unique(np.round(expected, 6), axis=0)) > 1 or case == "categorical"
    np.testing.assert_allclose(act.batch(xs, masks), expected, rtol=1e-5)
    try:
        import onnxruntime  # noqa: F401

        onnx = True
    except ImportError:
        onnx = False
    for actions in taken(tmp_path, xs, masks, onnx).values():
        np.testing.assert_allclose(actions, expected, rtol=1e-4, atol=1e-5)


def test_the_numpy_policy_acts_as_the_run_does(tmp_path):
    run = trained(QUICK)
    export(run, tmp_path, formats=("numpy",))
    xs, _ = observations(run, QUICK)
    act = run.policy(kind="mean")
    expected = [act(x) for x in xs]
    assert set(expected) == {0, 1}
    np.testing.assert_array_equal(taken(tmp_path, xs, None, False)["numpy"], expected)
    np.testing.assert_array_equal(act.batch(xs), expected)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["compiled", "masks", "continuous"])
def test_stablehlo_is_loaded_by_jax_alone(tmp_path, case):
    pytest.importorskip("flatbuffers")
    run = trained(case)
    export(run, tmp_path, formats=("numpy", "stablehlo"))
    xs, masks = observations(run, case)
    act = run.policy(kind="mean")
    expected = [act(x, None if masks is None else masks[i]) for i, x in enumerate(xs)]
    program = jax.export.deserialize(bytearray((tmp_path / "policy.stablehlo").read_bytes()))
    sys.path.insert(0, str(tmp_path))
    try:
        from policy import ExportedPolicy, encode

        space = ExportedPolicy().about["observation"]
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("policy", None)
    rows = np.stack([encode(space, x) for x in xs]).astype(np.float32)
    inputs = (rows,) if masks is None else (rows, masks.astype(bool))
    np.testing.assert_allclose(program.call(*inputs), expected, rtol=1e-5)
    assert KEY == "action_mask"


@pytest.mark.slow
def test_tables_are_refused_by_numpy_and_the_command_says_so(tmp_path, capsys):
    run = rove.train("psrl", "chain-5", episodes=3, progress=False, out=tmp_path / "run")
    with pytest.raises(ConfigError, match="stablehlo"):
        export(run, tmp_path / "policy")
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "policy")])
    assert "stablehlo" in capsys.readouterr().err


@pytest.mark.slow
def test_a_batch_of_a_policy_that_samples_has_a_theta_for_each_row():
    """With a wide posterior, rows with the same observation take different actions, each of them
    the same for an episode; `reset` draws anew."""
    agent = rove.Agent(
        rove.Gaussian(0.1),
        rove.MeanField(1.0),
        resample="episode",
        learning_starts=10**6,
        **{key: value for key, value in SMALL.items() if key != "learning_starts"},
    )
    run = rove.train(agent, "cartpole", episodes=2, progress=False)
    act, xs = run.policy(kind="sample"), np.ones((32, 4))
    first = act.batch(xs)
    assert set(first) == {0, 1}
    np.testing.assert_array_equal(act.batch(xs), first)
    act.reset()
    assert np.any(act.batch(xs) != first)
    assert len(act.batch(xs[:3])) == 3
