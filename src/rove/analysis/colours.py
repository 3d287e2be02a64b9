"""The colours of agents, in every plot and in the report."""

PALETTE = (
    ("#4c72b0", "#7fa6ea"), ("#dd8452", "#f0a069"), ("#2a9d5c", "#5ccb8c"), ("#c44e52", "#f0808f"),
    ("#5c3310", "#b07245"), ("#9a63e0", "#a874f5"), ("#12a5bd", "#86f0f2"), ("#8a1a6c", "#d9489c"),
    ("#b8a000", "#ece35a"), ("#555555", "#b0b5bd"),
)  # fmt: skip
"""Colours on a light and on a dark background. They differ in lightness as well as in hue, so that
most of them can be distinguished with colour blindness."""
_NUMBERS = {
    "dqn": 0, "noisynet": 1, "ge": 2, "ige": 3, "bootstrapped_dqn": 4, "c51": 5, "qr_dqn": 6,
    "bayesian_dqn": 7, "rlsvi": 8, "parameter_noise": 11, "double_uncertain": 13,
    "bayesian_q_learning": 14, "vdqn": 15, "bbq": 16, "thompson": 17, "psrl": 18,
    "auto": 27, "return_density": 21, "particles": 22, "thompson_beta": 23, "thompson_linear": 24,
    "adam_lmc": 25, "full_covariance": 26, "bbvi": 20,
    "ddpg": 0, "ddpg_noisynet": 1, "ddpg_ge": 2, "td3": 5, "ddpg_dropout": 4,
    "ge-step": 2, "ge-episode": 5, "dqn-paper": 10,
    "random": 19, "sb3": 6, "sb3-zoo": 16,
}  # fmt: skip
"""Numbers of styles: n has colour n mod 10 of the palette, and a dashed line from 10 on, and one of
dashes and dots from 20 on. None is dotted, as the optimum is."""
CUSTOM = len(PALETTE) - 1
"""The style of agents that are not listed."""


def number_of(agent: str) -> int:
    """Return the number of an agent's style."""
    return _NUMBERS.get(agent, CUSTOM)


def line_of(agent: str) -> dict[str, str]:
    """Return the colour and the line style of an agent, for Matplotlib."""
    row, column = divmod(number_of(agent), len(PALETTE))
    return {"color": PALETTE[column][0], "ls": ("-", "--", "-.")[row]}
