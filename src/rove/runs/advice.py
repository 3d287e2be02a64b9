"""What to do instead, for names that users of other libraries try first."""

_AGAIN = (
    "call rove.train with the same arguments, more episodes or steps, and out=FOLDER: it resumes "
    "or extends the run in the folder"
)
_ACT = "run.policy(seed) returns a function from observations to actions"
_TABLE = "episodes.csv in the run folder has one line per episode; run.save() writes the folder"
_COMMAND = "it is a command: run {} in a shell"

ROVE = {
    "list": "rove.AGENTS and rove.ENVIRONMENTS list the names",
    "envs": "rove.ENVIRONMENTS lists the names, and rove.make(name) creates an environment",
    "evaluate": "use run.evaluate(episodes), of a run from rove.train or rove.load",
    "eval": "use run.evaluate(episodes), of a run from rove.train or rove.load",
    "evaluate_policy": "use run.evaluate(episodes), of a run from rove.train or rove.load",
    "plot": "use run.plot(path), or rove.compare(runs, path) for several runs",
    "resume": _AGAIN,
    "save": "use run.save(folder), or rove.train(..., out=FOLDER)",
    "tune": "use rove.sweep(agent, environment, {setting: values})",
    "demo": _COMMAND.format("rove demo"),
    "reproduce": _COMMAND.format("rove reproduce"),
}
"""Names that `rove` does not have."""

RUN = {
    "act": _ACT,
    "predict": _ACT,
    "agent": "run.config.agent has its settings; " + _ACT,
    "model": "run.config.agent has its settings; " + _ACT,
    "env": "use run.config.environment",
    "environment": "use run.config.environment",
    "rewards": "run.returns has the return of every episode, [seeds, episodes]",
    "episodes": "run.returns, run.scores and run.lengths have an entry for every episode",
    "history": "run.returns, run.scores and run.lengths have an entry for every episode",
    "solved": "run.solved_at has the episode at which each seed solved its task, or None",
    "to_csv": _TABLE,
    "to_pandas": _TABLE,
    "load": "use rove.load(folder)",
    "watch": "use rove.watch(run, path)",
    "render": "use rove.watch(run, path)",
    "train": _AGAIN,
    "learn": _AGAIN,
    "fit": _AGAIN,
    "resume": _AGAIN,
    "extend": _AGAIN,
}
"""Names that a `Run` does not have."""

_NETWORK = (
    "set hidden=(64, 64), the widths of the hidden layers, or network=rove.ConvNet(…), a "
    "convolutional network for images"
)
_ENVS = (
    "rove.make(ID, copies=K) has each seed trained on K copies of a Gymnasium environment, and "
    "seeds=N trains N seeds, at most workers=M at once"
)

TRAIN = {
    "device": "JAX chooses the device; set the environment variable JAX_PLATFORMS to change it",
    "env_kwargs": "pass rove.make(name, **env_kwargs) as the environment",
    "env_id": "the environment is the second argument",
    "n": "the size is part of the environment's name, as in chain-100",
    "n_envs": _ENVS,
    "num_envs": _ENVS,
    "policy": _NETWORK,
    "policy_kwargs": _NETWORK,
    "render_mode": "train first, then record a video with rove.watch(run, path)",
    "eval_freq": "use eval_every=N, in episodes, or in steps if the budget is in steps",
    "eval_env": "use eval_every=N: evaluations have a separate environment",
    "tensorboard_log": 'pass log="tensorboard" and out=FOLDER',
}
"""Arguments that `rove.train` does not have."""
