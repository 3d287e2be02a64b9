"""`rove completion`: scripts that complete commands in a shell."""

from collections.abc import Iterable
from typing import Annotated, Literal

import tyro

from rove import environments
from rove.agents import AGENTS
from rove.cli.options import option_types
from rove.cli.run_options import SweepOptions, TrainOptions
from rove.paper import EXPERIMENTS

SIZES = {
    "chain": 100, "permuted-chain": 50, "deep-sea": 10, "bandit": 10, "bernoulli-bandit": 10,
    "linear-bandit": 5, "linear-quadratic": 2,
}  # fmt: skip
"""The size that is offered for each family of environments that needs one."""

BASH = """\
_rove() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" words=""
    local previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    case "$previous" in
        --out|--config) words="" ;;
        --on) words="processes threads ray" ;;
        --log) words="tensorboard trackio" ;;
        --method) words="grid random halving" ;;
        *) words="?" ;;
    esac
    if [ "$words" != "?" ]; then
        :
    elif [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    elif [[ "$command" == train || "$command" == sweep ]]; then
        case "$COMP_CWORD" in
            2) words="{agents}" ;;
            3) words="{environments}" ;;
            *) [ "$command" = train ] && words="{train}" || words="{sweep}" ;;
        esac
    elif [[ "$command" == reproduce && "$COMP_CWORD" -eq 2 ]]; then
        words="{experiments}"
    else
        words=""
    fi
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _rove rove
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n" + BASH
FISH = """\
complete -c rove -n "__fish_use_subcommand" -f -a "{commands}"
complete -c rove -n "__fish_seen_subcommand_from train sweep; and test (count (commandline -opc)) -eq 2" -f -a "{agents}"
complete -c rove -n "__fish_seen_subcommand_from train sweep; and test (count (commandline -opc)) -eq 3" -f -a "{environments}"
complete -c rove -n "__fish_seen_subcommand_from train; and test (count (commandline -opc)) -gt 3" -a "{train}"
complete -c rove -n "__fish_seen_subcommand_from sweep; and test (count (commandline -opc)) -gt 3" -a "{sweep}"
complete -c rove -n "__fish_seen_subcommand_from reproduce" -f -a "{experiments}"
"""  # noqa: E501
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def shell(
    shell: Annotated[
        tyro.conf.Positional[Literal["bash", "zsh", "fish"]], tyro.conf.arg(metavar="SHELL")
    ],
    /,
) -> str:
    """Print a script that completes rove's commands, agents, environments and options.

    For bash: rove completion bash > ~/.local/share/bash-completion/completions/rove

    For zsh: rove completion zsh > "${fpath[1]}/_rove"

    For fish: rove completion fish > ~/.config/fish/completions/rove.fish

    Args:
        shell: bash, zsh or fish.
    """
    return shell


def script(shell: str, commands: Iterable[str]) -> str:
    """Return the script for a shell, given the names of all commands."""
    sized = (
        f"{name}-{SIZES.get(name, 10)}" if family.sized else name
        for name, family in environments.ENVIRONMENTS.items()
    )
    of_agents = dict.fromkeys(
        f"agent.{flag}" for kind in AGENTS.values() for flag in option_types(kind)
    )
    words = {
        "commands": commands,
        "agents": AGENTS,
        "environments": [*sized, *environments.ALIASES, "gym/", "gymnax/"],
        "experiments": [*EXPERIMENTS, "tuning"],
        "train": [f"--{flag}" for flag in (*option_types(TrainOptions), *of_agents)],
        "sweep": [f"--{flag}" for flag in (*option_types(SweepOptions), *of_agents)],
    }
    return SCRIPTS[shell].format(**{name: " ".join(listed) for name, listed in words.items()})
