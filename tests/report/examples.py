"""Text and steps that reports of the tests show."""

HOSTILE = "</script><img src=x onerror=alert(1)>"

TRACE = [
    {"step": k, "move": move, "source": HOSTILE, "n_patterns": n}
    | {"objective": length, "gain": gain, "accepted": gain > 0}
    for k, (move, n, length, gain) in enumerate(
        [("add", 2, 900.0, 99.5), ("add", 3, 850.0, 50.0), ("add", 4, 853.0, -3.0)]
    )
]
