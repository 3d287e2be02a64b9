"""The colours of agents, in every plot and in the report."""

PALETTE = (
    ("#4c72b0", "#7fa6ea"), ("#dd8452", "#f0a069"), ("#2a9d5c", "#5ccb8c"), ("#c44e52", "#f0808f"),
    ("#937860", "#c4ad98"), ("#8e6bbf", "#b893ea"), ("#1b8a93", "#58c9d2"), ("#b5479b", "#ea8cd3"),
    ("#7a6a2d", "#cdb865"), ("#555555", "#b0b5bd"),
)  # fmt: skip
"""Colours on a light ground and on a dark one."""
_NUMBERS = {
    "dqn": 0, "noisynet": 1, "ge": 2, "ige": 3, "bootstrapped_dqn": 4, "c51": 5, "qr_dqn": 6,
    "bayesian_dqn": 7, "rlsvi": 8, "parameter_noise": 11, "double_uncertain": 13,
    "bayesian_q_learning": 14, "vdqn": 15, "bbq": 16, "thompson": 17, "psrl": 18,
    "ddpg": 0, "ddpg_noisynet": 1, "ddpg_ge": 2, "td3": 5,
    "ge-step": 2, "ge-episode": 5, "dqn-paper": 10,
}  # fmt: skip
"""Numbers of styles: n has colour n mod 10 of the palette, and a dashed line from 10 on."""
CUSTOM = len(PALETTE) - 1
"""The number of agents that are not listed."""


def number_of(agent: str) -> int:
    """Return the number of an agent's style."""
    return _NUMBERS.get(agent, CUSTOM)


def line_of(agent: str) -> dict[str, str]:
    """Return the colour and the line style of an agent, for Matplotlib."""
    row, column = divmod(number_of(agent), len(PALETTE))
    return {"color": PALETTE[column][0], "ls": "--" if row else "-"}
