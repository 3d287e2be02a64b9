"""What the report is tested on that no run has made."""

import itertools

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


def sweep_of(fields, score=lambda *at: float(sum(at))):
    """A sweep's file: every combination of the fields, on three seeds."""
    points = [
        {
            "settings": dict(zip(fields, at, strict=True)),
            "scores": [score(*at) + seed / 10 for seed in range(3)],
            "seeds": [100, 101, 102],
            "confirmed": [score(*at), score(*at) + 0.4] if i == 0 else None,
        }
        for i, at in enumerate(itertools.product(*fields.values()))
    ]
    return {"agent": "ge", "environment": "chain-5", "fields": fields, "points": points}
