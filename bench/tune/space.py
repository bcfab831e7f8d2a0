"""Search spaces of the benchmark: lists of parameters, as `ath tune --stdio` takes them, mapped to
the unit cube (categories: an index) and back for contenders that need it."""

import math

import numpy as np


def F(name, low, high, scale="linear"):
    return {"name": name, "type": "float", "scale": scale, "low": low, "high": high}


def I(name, low, high, scale="linear"):  # noqa: E743
    return {"name": name, "type": "int", "scale": scale, "low": low, "high": high}


def C(name, choices):
    return {"name": name, "type": "cat", "choices": list(choices)}


def forward(x, scale):
    if scale == "log":
        return math.log(x)
    if scale == "reverse_log":
        return -math.log1p(-x)
    return float(x)


def backward(w, scale):
    if scale == "log":
        return math.exp(w)
    if scale == "reverse_log":
        return -math.expm1(-w)
    return w


class Space:
    def __init__(self, params):
        self.params = params
        self.dim = len(params)
        self.is_cat = np.array([p["type"] == "cat" for p in params])
        self.n_choices = [len(p["choices"]) if p["type"] == "cat" else 0 for p in params]

    def bounds(self, p):
        """Ends of the scale; ints have half a cell beyond each end."""
        low, high = p["low"], p["high"]
        if p["type"] == "int" and p["scale"] == "linear":
            return low - 0.5, high + 0.5
        if p["type"] == "int" and p["scale"] == "log":
            return math.log(max(low - 0.5, 0.5 * low)), math.log(high + 0.5)
        return forward(low, p["scale"]), forward(high, p["scale"])

    def from_unit(self, u):
        out = {}
        for p, v in zip(self.params, u):
            if p["type"] == "cat":
                out[p["name"]] = p["choices"][min(int(v), len(p["choices"]) - 1)]
                continue
            low, high = self.bounds(p)
            x = backward(low + min(max(float(v), 0.0), 1.0) * (high - low), p["scale"])
            if p["type"] == "int":
                x = round(x)
            x = min(max(x, p["low"]), p["high"])
            out[p["name"]] = int(x) if p["type"] == "int" else x
        return out

    def to_unit(self, params):
        u = np.empty(self.dim)
        for i, p in enumerate(self.params):
            x = params[p["name"]]
            if p["type"] == "cat":
                u[i] = p["choices"].index(x)
            else:
                low, high = self.bounds(p)
                u[i] = (forward(x, p["scale"]) - low) / (high - low)
        return u

    def sample_unit(self, rng, n):
        units = rng.random((n, self.dim))
        for i, count in enumerate(self.n_choices):
            if count:
                units[:, i] = np.minimum((units[:, i] * count).astype(int), count - 1)
        return units

    def check(self, params):
        """Raises ValueError unless this is a legal assignment: contenders are not trusted."""
        if set(params) != {p["name"] for p in self.params}:
            raise ValueError("wrong parameter names: %s" % sorted(params))
        for p in self.params:
            x = params[p["name"]]
            if p["type"] == "cat":
                if x not in p["choices"]:
                    raise ValueError("%s=%r is not a choice" % (p["name"], x))
                continue
            slack = 1e-9 * max(1.0, abs(p["high"]))
            if not p["low"] - slack <= x <= p["high"] + slack:
                raise ValueError("%s=%r out of range" % (p["name"], x))
            if p["type"] == "int" and int(x) != x:
                raise ValueError("%s=%r is not an integer" % (p["name"], x))
