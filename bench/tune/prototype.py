"""Two reference tuners in numpy, for what is achievable; not made for speed.

The model is a Gaussian process with a Matern-5/2 kernel on the unit cube, Kumaraswamy warps of the
inputs, a mismatch distance for categories and a Yeo-Johnson transform of the values; its
hyper-parameters are the maximum of the posterior.
gp-mace: NSGA-II over (-logEI, -logPI, LCB); a round's asks come from one Pareto front.
gp-logei: one maximum of logEI an ask; running trials count at their predicted mean.
Failed trials get the worst value seen.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import erfc, log_ndtr
from scipy.stats import qmc

S5 = np.sqrt(5.0)


def yeo_johnson(y):
    """Standardise + Yeo-Johnson with a bounded lambda chosen on a grid by profile likelihood."""
    y = (y - y.mean()) / (y.std() + 1e-12)
    best = None
    for lam in np.linspace(-2, 4, 25):
        z = np.where(
            y >= 0,
            (
                np.log1p(np.maximum(y, 0))
                if abs(lam) < 1e-9
                else (np.power(1 + np.maximum(y, 0), lam) - 1) / lam
            ),
            (
                -np.log1p(np.maximum(-y, 0))
                if abs(lam - 2) < 1e-9
                else -(np.power(1 + np.maximum(-y, 0), 2 - lam) - 1) / (2 - lam)
            ),
        )
        ll = -0.5 * len(y) * np.log(z.var() + 1e-300) + (lam - 1) * np.sum(
            np.sign(y) * np.log1p(np.abs(y))
        )
        if best is None or ll > best[0]:
            best = (ll, z)
    z = best[1]
    return (z - z.mean()) / (z.std() + 1e-12)


def transform_y(y):
    med, lo = np.median(y), y.min()
    cap = med + 3.0 * max(med - lo, 1e-12)  # very bad values carry no more information than "bad"
    y = np.minimum(y, cap)
    if y.std() < 1e-12:
        return np.zeros_like(y)
    return yeo_johnson(y)


class GP:
    def __init__(self, is_cat):
        self.cat = is_cat
        self.num = ~is_cat
        self.D = len(is_cat)
        self.theta = None

    def pack0(self):
        nn = self.num.sum()
        return np.concatenate(
            [
                np.full(self.D, np.log(0.5) + 0.5 * np.log(max(self.D, 2) / 2)),
                [0.0],
                [np.log(1e-2)],
                np.zeros(2 * nn),
            ]
        )

    def warp(self, X, th):
        W = X.copy()
        nn = self.num.sum()
        a, b = np.exp(th[self.D + 2 : self.D + 2 + nn]), np.exp(th[self.D + 2 + nn :])
        u = np.clip(X[:, self.num], 1e-6, 1 - 1e-6)
        W[:, self.num] = 1 - (1 - u**a) ** b
        return W

    def sq(self, A, B, ls):
        An, Bn = A[:, self.num] / ls[self.num], B[:, self.num] / ls[self.num]
        r2 = (An**2).sum(1)[:, None] + (Bn**2).sum(1)[None] - 2 * An @ Bn.T
        for k in np.flatnonzero(self.cat):
            r2 += (A[:, k][:, None] != B[:, k][None]) / ls[k] ** 2
        return np.maximum(r2, 0)

    def nll(self, th):
        n, D = self.X.shape
        ls, s, nz = np.exp(th[:D]), np.exp(th[D]), np.exp(th[D + 1]) + 1e-6
        W = self.warp(self.X, th)
        r2 = self.sq(W, W, ls)
        r = np.sqrt(r2)
        e = np.exp(-S5 * r)
        K = s * (1 + S5 * r + 5 / 3 * r2) * e
        try:
            c = cho_factor(K + (nz + 1e-8) * np.eye(n), lower=True)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(th)
        al = cho_solve(c, self.y)
        f = 0.5 * self.y @ al + np.log(np.diag(c[0])).sum()
        M = np.outer(al, al) - cho_solve(c, np.eye(n))
        G = M * (s * 5 / 3 * (1 + S5 * r) * e)
        g = np.zeros_like(th)
        gs = G.sum(1)
        GW = G @ W
        num = np.flatnonzero(self.num)
        quad = 2 * ((gs[:, None] * W**2).sum(0) - (W * GW).sum(0))
        for k in np.flatnonzero(self.cat):
            quad[k] = (G * (self.X[:, k][:, None] != self.X[:, k][None])).sum()
        g[:D] = -0.5 * quad / ls**2
        g[D] = -0.5 * (M * K).sum()
        g[D + 1] = -0.5 * np.trace(M) * (nz - 1e-6)
        dW = (gs[:, None] * W - GW)[:, num] / ls[num] ** 2  # d nll / d w
        nn = len(num)
        a, b = np.exp(th[D + 2 : D + 2 + nn]), np.exp(th[D + 2 + nn :])
        u = np.clip(self.X[:, num], 1e-6, 1 - 1e-6)
        ua = u**a
        g[D + 2 : D + 2 + nn] = (dW * (b * (1 - ua) ** (b - 1) * ua * np.log(u) * a)).sum(0)
        g[D + 2 + nn :] = (dW * (-((1 - ua) ** b) * np.log(1 - ua) * b)).sum(0)
        mu = np.concatenate(
            [np.full(D, np.log(0.5) + 0.5 * np.log(max(D, 2) / 2)), [0.0], [-4.6], np.zeros(2 * nn)]
        )
        sd = np.concatenate([np.full(D, 1.0), [0.7], [1.5], np.full(2 * nn, 0.4)])
        z = (th - mu) / sd
        return f + 0.5 * z @ z, g + z / sd

    def fit(self, X, y, rng, optimise=True, iters=40):
        self.X, self.y = X, y
        if self.theta is None:
            self.theta = self.pack0()
            optimise = True
        if optimise:
            lo = np.log(0.03), np.log(0.05), np.log(1e-6), -1.2
            nn = self.num.sum()
            bnd = (
                [(lo[0], np.log(30))] * self.D
                + [(lo[1], np.log(20))]
                + [(lo[2], 0.0)]
                + [(-1.2, 1.2)] * (2 * nn)
            )
            best = None
            starts = [self.theta]
            if rng.random() < 0.3 or len(y) < 24:
                starts.append(self.pack0() + 0.3 * rng.standard_normal(len(self.theta)))
            for th in starts:
                r = minimize(
                    self.nll,
                    np.clip(th, [b[0] for b in bnd], [b[1] for b in bnd]),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=bnd,
                    options={"maxiter": iters},
                )
                if best is None or r.fun < best.fun:
                    best = r
            self.theta = best.x
        self.factor()

    def factor(self):
        th, D = self.theta, self.D
        self.ls, self.s, self.nz = np.exp(th[:D]), np.exp(th[D]), np.exp(th[D + 1]) + 1e-6
        self.W = self.warp(self.X, th)
        K = self.kern(self.W, self.W) + (self.nz + 1e-8) * np.eye(len(self.y))
        self.L = np.linalg.cholesky(K)
        self.al = cho_solve((self.L, True), self.y)

    def kern(self, A, B):
        r2 = self.sq(A, B, self.ls)
        r = np.sqrt(r2)
        return self.s * (1 + S5 * r + 5 / 3 * r2) * np.exp(-S5 * r)

    def predict(self, X):
        k = self.kern(self.warp(X, self.theta), self.W)
        mu = k @ self.al
        v = solve_triangular(self.L, k.T, lower=True, check_finite=False)
        return mu, np.sqrt(np.maximum(self.s - (v * v).sum(0), 1e-10))


def log_ei(mu, sd, best):
    z = (best - mu) / sd
    phi = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    h = phi + z * 0.5 * erfc(-z / np.sqrt(2))
    far = z < -5
    out = np.log(np.maximum(h, 1e-300))
    zf = z[far]
    out[far] = -0.5 * zf * zf - 0.5 * np.log(2 * np.pi) - 2 * np.log(-zf)
    return out + np.log(sd)


class GPOpt:
    def __init__(self, space, seed, kind):
        self.sp, self.kind = space, kind
        self.rng = np.random.default_rng(seed)
        self.sobol = qmc.Sobol(space.dim, scramble=True, seed=int(seed) % (2**31))
        self.ninit = max(8, min(space.dim + 1, 16))
        self.X, self.y, self.pend = [], [], []
        self.gp = GP(space.is_cat)
        self.asked = 0
        self.fitted_n = self.tried = -1
        self.front = []
        self.seen = set()

    def snap(self, u):
        return self.sp.to_unit(self.sp.from_unit(u))

    def snap_all(self, U):
        """Vectorised rounding of ints so that the model sees what will be evaluated."""
        V = np.clip(U, 0, None)
        for i, p in enumerate(self.sp.params):
            if p["type"] == "int":
                lo, hi = self.sp.bounds(p)
                w = lo + np.clip(U[:, i], 0, 1) * (hi - lo)
                x = np.clip(np.round(np.exp(w) if p["scale"] == "log" else w), p["low"], p["high"])
                V[:, i] = ((np.log(x) if p["scale"] == "log" else x) - lo) / (hi - lo)
        return V

    def give(self, u):
        d = self.sp.from_unit(u)
        self.pend.append((d, self.sp.to_unit(d)))
        self.seen.add(repr(sorted(d.items())))
        self.asked += 1
        return d

    def is_new(self, u):
        return repr(sorted(self.sp.from_unit(u).items())) not in self.seen

    def initial(self):
        u = self.sobol.random(1)[0]
        for i, k in enumerate(self.sp.n_choices):
            if k:
                u[i] = min(int(u[i] * k), k - 1)
        return u

    def fit(self):
        n = len(self.y)
        if n == self.fitted_n:
            return
        y = np.array(self.y)
        ok = np.isfinite(y)
        X, yy = np.array(self.X), np.where(ok, y, y[ok].max())
        t = transform_y(yy)
        due = self.gp.theta is None or n < 32 or n - self.tried >= (2 if n < 64 else 4)
        self.gp.fit(X, t, self.rng, optimise=due, iters=30)
        if due:
            self.tried = n
        self.t, self.fitted_n, self.front = t, n, []

    def ask(self):
        ok = np.isfinite(np.array(self.y, float)).sum() if self.y else 0
        if self.asked < self.ninit or ok < 3:
            return self.give(self.initial())
        self.fit()
        if self.kind == "gp-mace":
            if not self.front:
                self.front = self.mace()
            return self.give(self.front.pop(0) if self.front else self.initial())
        return self.give(self.logei())

    # --- logEI + kriging believer -------------------------------------------------------------
    def logei(self):
        gp, sp = self.gp, self.sp
        base = (gp.X, gp.y)
        if self.pend:
            Xp = np.array([u for _, u in self.pend])
            mu, _ = gp.predict(Xp)
            gp.X, gp.y = np.vstack([gp.X, Xp]), np.concatenate([gp.y, mu])
            gp.factor()
        mu, _ = gp.predict(gp.X)
        best = mu.min()  # noise-robust incumbent: best posterior mean
        f = lambda U: log_ei(*gp.predict(U), best)
        U = np.vstack([sp.sample_unit(self.rng, 200), self.near(gp.X[np.argsort(mu)[:5]], 20, 0.1)])
        U = self.snap_all(U)
        v = f(U)
        for it in range(7):
            top = U[np.argsort(-v)[:8]]
            tv = np.sort(v)[::-1][:8]
            N = self.snap_all(self.near(top, 10, 0.15 * 0.55**it))
            U, v = np.vstack([top, N]), np.concatenate([tv, f(N)])
        order = np.argsort(-v)
        pick = next((U[i] for i in order[:60] if self.is_new(U[i])), None)
        if self.pend:
            gp.X, gp.y = base
            gp.factor()
        return self.initial() if pick is None else pick

    def near(self, C, k, step):
        """k mutants of each row of C: Gaussian steps on some coordinates, category flips."""
        N = np.repeat(C, k, 0)
        m, D = N.shape
        mask = self.rng.random((m, D)) < max(0.3, 2.0 / D)
        mask[np.arange(m), self.rng.integers(0, D, m)] = True
        for i, p in enumerate(self.sp.params):
            r = mask[:, i]
            if p["type"] == "cat":
                r = r & (self.rng.random(m) < 0.5)
                N[r, i] = self.rng.integers(0, self.sp.n_choices[i], r.sum())
            else:
                s = step
                if p["type"] == "int" and p["scale"] == "linear":
                    s = max(step, 1.0 / (p["high"] - p["low"] + 1))
                N[r, i] = np.clip(N[r, i] + s * self.rng.standard_normal(r.sum()), 0, 1)
        return N

    # --- MACE (NSGA-II over three acquisitions) ------------------------------------------------
    def mace(self, pop=60, gens=30):
        gp, sp, rng = self.gp, self.sp, self.rng
        mu, sd = gp.predict(gp.X)
        tau = mu.min()
        D = sp.dim
        it = max(1, len(self.y))
        kappa = np.sqrt((2 + D / 2) * np.log(it) * 0.5 + np.log(3 * np.pi**2 / 0.03) * 0.5)

        def objs(U):
            m, s = gp.predict(U)
            return np.stack(
                [-log_ei(m, s, tau - 1e-4), -log_ndtr((tau - 1e-4 - m) / s), m - kappa * s], 1
            )

        U = self.snap_all(
            np.vstack([sp.sample_unit(rng, pop - 20), self.near(gp.X[np.argsort(mu)[:4]], 5, 0.05)])
        )
        Fv = objs(U)
        for g in range(gens):
            pa, pb = rng.integers(0, len(U), (2, pop))
            mix = rng.random((pop, D)) < 0.5
            Cn = np.where(mix, U[pa], U[pb])
            blend = (rng.random((pop, D)) < 0.3) & ~sp.is_cat
            w = rng.random((pop, D))
            Cn = np.where(blend, w * U[pa] + (1 - w) * U[pb], Cn)
            Cn = self.snap_all(self.near(Cn, 1, 0.1 if g < gens // 2 else 0.03))
            U, Fv = np.vstack([U, Cn]), np.vstack([Fv, objs(Cn)])
            keep = nsga_select(Fv, pop)
            U, Fv = U[keep], Fv[keep]
        nd = pareto(Fv)
        out, names = [], set()
        U = U[nd]
        m, s = gp.predict(U)
        order = list(rng.permutation(len(U)))
        for j in {
            int(np.argmin(m)),
            int(np.argmax(s)),
        }:  # always offer the best mean and the most uncertain
            order.remove(j)
            if len(self.pend) == 0 and len(order) > 4:
                order.insert(rng.integers(0, 6), j)
        for j in order:
            k = repr(sorted(sp.from_unit(U[j]).items()))
            if k not in self.seen and k not in names:
                names.add(k)
                out.append(U[j])
        return out[:8]

    def close(self):
        pass

    def preload(self, params, value):
        """An observation made elsewhere (warm start)."""
        self.X.append(self.sp.to_unit(params))
        self.y.append(float(value))
        self.asked += 1
        self.seen.add(repr(sorted(params.items())))

    def tell(self, params, value):
        i = next(i for i, (d, _) in enumerate(self.pend) if d == params)
        _, u = self.pend.pop(i)
        self.X.append(u)
        self.y.append(float(value))


def pareto(Fv):
    le = (Fv[:, None] <= Fv[None]).all(2)
    lt = (Fv[:, None] < Fv[None]).any(2)
    return np.flatnonzero(~(le & lt).any(0))


def nsga_select(Fv, k):
    dom = (Fv[:, None] <= Fv[None]).all(2) & (Fv[:, None] < Fv[None]).any(2)
    cnt = dom.sum(0)
    out, left = [], np.ones(len(Fv), bool)
    while len(out) < k:
        fr = np.flatnonzero(left & (cnt == 0))
        if len(fr) == 0:
            fr = np.flatnonzero(left)
        if len(out) + len(fr) > k:
            cd = np.zeros(len(fr))
            for j in range(Fv.shape[1]):
                o = np.argsort(Fv[fr, j])
                v = Fv[fr[o], j]
                cd[o[0]] = cd[o[-1]] = np.inf
                cd[o[1:-1]] += (v[2:] - v[:-2]) / (v[-1] - v[0] + 1e-12)
            fr = fr[np.argsort(-cd)[: k - len(out)]]
        out += list(fr)
        left[fr] = False
        cnt = cnt - dom[fr].sum(0)
    return np.array(out)


def make(space, seed, kind="gp-logei"):
    return GPOpt(space, seed, kind)
