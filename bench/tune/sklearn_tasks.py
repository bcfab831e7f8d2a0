"""scikit-learn models' cross-validated losses on small data, evaluated for real: a nearest-grid
table would be piecewise constant and favour trees and densities. Only AdaBoost is tabulated.

The spaces follow bayesmark's, but for speed: 3 folds instead of 5 (2 for the slow models), fewer
rows, at most 12 epochs, a fixed random_state; and its logit scale is the nearest of linear, log
and reverse_log.
"""

import json
import math
import warnings

import numpy as np

from space import C, F, I, Space


class Problem:
    """A space, a deterministic true function, and the noise a trial sees on top of it."""

    def __init__(self, name, params, func, noise=0.0, optimum=None, family="synthetic"):
        self.name, self.func, self.noise = name, func, noise
        self.space = Space(params)
        self.optimum = optimum  # of the true function, if known
        self.family = family
        self.cache = {}

    def true(self, params):
        key = json.dumps(params, sort_keys=True, default=str)
        if key not in self.cache:
            self.cache[key] = float(self.func(params))
        return self.cache[key]

    def observe(self, params, rng):
        """What the tuner is told, and what it is judged by."""
        true = self.true(params)
        seen = true + self.noise * rng.standard_normal() if self.noise else true
        return (seen if math.isfinite(seen) else float("nan")), true


KNN = [I("n_neighbors", 1, 25), I("p", 1, 4)]
SVM = [F("C", 1.0, 1e3, "log"), F("gamma", 1e-4, 1e-3, "log"), F("tol", 1e-5, 1e-1, "log")]
TREE = [
    I("max_depth", 1, 15),
    F("min_samples_split", 0.01, 0.99, "log"),
    F("min_samples_leaf", 0.01, 0.49, "log"),
    F("min_weight_fraction_leaf", 0.01, 0.49, "log"),
    F("max_features", 0.01, 0.99, "linear"),
    F("min_impurity_decrease", 0.0, 0.5),
]
MLP_ADAM = [
    I("hidden_layer_sizes", 50, 200),
    F("alpha", 1e-5, 1e1, "log"),
    I("batch_size", 10, 250),
    F("learning_rate_init", 1e-5, 1e-1, "log"),
    F("tol", 1e-5, 1e-1, "log"),
    F("validation_fraction", 0.1, 0.9),
    F("beta_1", 0.5, 0.99, "reverse_log"),
    F("beta_2", 0.9, 1 - 1e-6, "reverse_log"),
    F("epsilon", 1e-9, 1e-6, "log"),
]
MLP_SGD = [
    I("hidden_layer_sizes", 50, 200),
    F("alpha", 1e-5, 1e1, "log"),
    I("batch_size", 10, 250),
    F("learning_rate_init", 1e-5, 1e-1, "log"),
    F("power_t", 0.1, 0.9),
    F("tol", 1e-5, 1e-1, "log"),
    F("momentum", 0.001, 0.999, "reverse_log"),
    F("validation_fraction", 0.1, 0.9),
]
ADA = [I("n_estimators", 10, 100), F("learning_rate", 1e-4, 1e1, "log")]
LIN_CLF = [F("C", 1e-2, 1e2, "log"), F("intercept_scaling", 1e-2, 1e2, "log")]
LASSO_REG = [
    F("alpha", 1e-2, 1e2, "log"),
    C("fit_intercept", [True, False]),
    I("max_iter", 10, 5000, "log"),
    F("tol", 1e-5, 1e-1, "log"),
    C("positive", [True, False]),
]
RIDGE_REG = [
    F("alpha", 1e-2, 1e2, "log"),
    C("fit_intercept", [True, False]),
    I("max_iter", 10, 5000, "log"),
    F("tol", 1e-4, 1e-1, "log"),
]
# Not in bayesmark: mixed spaces with categories.
SVM_MIX = [
    C("kernel", ["rbf", "poly", "sigmoid", "linear"]),
    F("C", 1e-2, 1e3, "log"),
    F("gamma", 1e-4, 1e1, "log"),
    I("degree", 2, 5),
    F("coef0", 0.0, 1.0),
    C("shrinking", [True, False]),
]
GBM_MIX = [
    C("criterion", ["friedman_mse", "squared_error"]),
    F("learning_rate", 1e-3, 1.0, "log"),
    I("n_estimators", 3, 30, "log"),
    I("max_depth", 1, 6),
    F("subsample", 0.3, 1.0),
    I("min_samples_leaf", 1, 30, "log"),
    C("max_features", ["sqrt", "log2", "all"]),
]


def load(name, rows):
    from sklearn import datasets as ds

    clf = True
    if name in ("breast", "iris", "wine", "digits"):
        X, y = {
            "breast": ds.load_breast_cancer,
            "iris": ds.load_iris,
            "wine": ds.load_wine,
            "digits": ds.load_digits,
        }[name](return_X_y=True)
    elif name == "diabetes":
        X, y = ds.load_diabetes(return_X_y=True)
        clf = False
    elif name == "friedman":
        X, y = ds.make_friedman1(n_samples=400, n_features=8, noise=1.0, random_state=11)
        clf = False
    elif name == "madelon":
        X, y = ds.make_classification(
            n_samples=500,
            n_features=12,
            n_informative=5,
            n_redundant=3,
            n_classes=3,
            class_sep=0.8,
            flip_y=0.05,
            random_state=5,
        )
    else:
        raise KeyError(name)
    p = np.random.RandomState(0).permutation(len(y))[:rows]
    X, y = X[p].astype(float), y[p]
    sd = X.std(0)
    X = (X - X.mean(0)) / np.where(sd > 1e-12, sd, 1.0)
    if not clf:
        y = (y - y.mean()) / y.std()
    return X, y, clf


def _model(kind, clf):
    from sklearn import (
        ensemble as en,
        linear_model as lm,
        neighbors as nb,
        neural_network as nn,
        svm,
        tree,
    )

    mlp = dict(early_stopping=True, max_iter=12, random_state=0)
    sgd = dict(mlp, solver="sgd", learning_rate="invscaling", nesterovs_momentum=True)
    T = {
        "kNN": (KNN, nb.KNeighborsClassifier if clf else nb.KNeighborsRegressor, {}),
        "SVM": (
            SVM,
            svm.SVC if clf else svm.SVR,
            dict(kernel="rbf", **({"random_state": 0} if clf else {})),
        ),
        "SVMmix": (SVM_MIX, svm.SVC if clf else svm.SVR, dict(max_iter=20000)),
        "DT": (
            TREE,
            tree.DecisionTreeClassifier if clf else tree.DecisionTreeRegressor,
            dict(random_state=0),
        ),
        "RF": (
            TREE,
            en.RandomForestClassifier if clf else en.RandomForestRegressor,
            dict(n_estimators=10, random_state=0),
        ),
        "MLPadam": (
            MLP_ADAM,
            nn.MLPClassifier if clf else nn.MLPRegressor,
            dict(mlp, solver="adam"),
        ),
        "MLPsgd": (
            MLP_SGD,
            nn.MLPClassifier if clf else nn.MLPRegressor,
            sgd if clf else dict(sgd, activation="tanh"),
        ),
        "ada": (ADA, en.AdaBoostClassifier if clf else en.AdaBoostRegressor, dict(random_state=0)),
        "lasso": (
            (LIN_CLF, lm.LogisticRegression, dict(penalty="l1", solver="liblinear", random_state=0))
            if clf
            else (LASSO_REG, lm.Lasso, {})
        ),
        "linear": (
            (LIN_CLF, lm.LogisticRegression, dict(penalty="l2", solver="liblinear", random_state=0))
            if clf
            else (RIDGE_REG, lm.Ridge, dict(solver="auto"))
        ),
        "GBMmix": (GBM_MIX, en.GradientBoostingRegressor, dict(random_state=0)),
    }
    return T[kind]


def _loss(metric, y, classes, P):
    P = np.clip(P, 1e-6, 1.0)
    P = P / P.sum(1, keepdims=True)
    if metric == "nll":
        return -np.mean(np.log(P[np.arange(len(y)), np.searchsorted(classes, y)]))
    return -np.mean(classes[P.argmax(1)] == y)


def ada_task(data, metric, rows):
    """AdaBoost: one fit with 100 estimators gives every n_estimators, so the two dimensions are
    tabulated: exact in n_estimators, interpolated between 41 learning rates, on demand."""
    LR = np.logspace(-4, 1, 41)
    st = {}

    def column(j):
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.model_selection import StratifiedKFold

        if j not in st:
            X, y, _ = load(data, rows)
            tot = np.zeros(101)
            for tr, te in StratifiedKFold(2, shuffle=True, random_state=1).split(X, y):
                m = AdaBoostClassifier(n_estimators=100, learning_rate=LR[j], random_state=0).fit(
                    X[tr], y[tr]
                )
                L = [_loss(metric, y[te], m.classes_, P) for P in m.staged_predict_proba(X[te])]
                L += [L[-1]] * (100 - len(L))  # stopped early: perfect fit
                tot[1:] += np.array(L) / 2
            st[j] = tot
        return st[j]

    def func(d):
        t = (np.log10(d["learning_rate"]) + 4) * 8
        j = int(min(max(np.floor(t), 0), 39))
        f = t - j
        return (1 - f) * column(j)[d["n_estimators"]] + f * column(j + 1)[d["n_estimators"]]

    return Problem("ada-%s-%s" % (data, metric), ADA, func, family="sklearn")


def task(kind, data, metric, rows=300, folds=3):
    """Build one Problem, e.g. task('DT', 'breast', 'nll')."""
    if kind == "ada":
        return ada_task(data, metric, rows)
    if kind in ("RF", "MLPadam", "MLPsgd", "GBMmix"):
        folds = 2
    state = {}

    def setup():
        from sklearn.model_selection import KFold, StratifiedKFold

        X, y, clf = load(data, rows)
        kf = (StratifiedKFold if clf else KFold)(folds, shuffle=True, random_state=1)
        state.update(X=X, y=y, clf=clf, splits=list(kf.split(X, y)))

    def func(d):
        if not state:
            setup()
        X, y, clf = state["X"], state["y"], state["clf"]
        _, cls, fixed = _model(kind, clf)
        kw = dict(fixed, **d)
        if kw.get("max_features") == "all":
            kw["max_features"] = None
        if kind == "SVM" and clf and metric == "nll":
            kw["probability"] = True
        loss = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for tr, te in state["splits"]:
                if "batch_size" in kw:
                    kw["batch_size"] = min(
                        d["batch_size"], max(1, int(len(tr) * (1 - d["validation_fraction"])) - 1)
                    )
                try:
                    m = cls(**kw).fit(X[tr], y[tr])
                    if metric == "nll":
                        v = _loss(metric, y[te], m.classes_, m.predict_proba(X[te]))
                    elif metric == "acc":
                        v = -np.mean(m.predict(X[te]) == y[te])
                    else:
                        e = m.predict(X[te]) - y[te]
                        v = np.mean(np.abs(e)) if metric == "mae" else np.mean(e * e)
                except ValueError:
                    return float("nan")  # diverged or an impossible split: a failed trial
                loss += v / folds
        return loss if np.isfinite(loss) else float("nan")

    clf = data not in ("diabetes", "friedman")
    return Problem("%s-%s-%s" % (kind, data, metric), _model(kind, clf)[0], func, family="sklearn")
