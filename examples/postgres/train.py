"""Fits y = a x + b to the rows of a PostgreSQL table, read with a secret connection string."""
import argparse
import json
import os
import re
import subprocess
from urllib.parse import parse_qsl, unquote, urlsplit


def read_with_driver(table):
    import psycopg2
    from psycopg2 import sql

    with psycopg2.connect(os.environ["POSTGRES_DSN"]) as connection:
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT x, y FROM {}").format(sql.Identifier(table)))
            return [(float(x), float(y)) for x, y in cursor.fetchall()]


def read_with_psql(table):
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", table):
        raise SystemExit(f"not the name of a table: {table}")
    # As variables: the arguments of a program are there for everybody to read.
    url = urlsplit(os.environ["POSTGRES_DSN"])
    parts = {"PGHOST": url.hostname, "PGPORT": url.port, "PGUSER": url.username,
             "PGPASSWORD": url.password, "PGDATABASE": url.path.lstrip("/")}
    environment = {**os.environ, **{k: unquote(str(v)) for k, v in parts.items() if v}}
    for name, value in parse_qsl(url.query):
        environment["PG" + name.upper()] = value
    command = ["psql", "--no-psqlrc", "--tuples-only", "--csv", "--command",
               f'SELECT x, y FROM "{table}"']
    text = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return [tuple(map(float, line.split(","))) for line in text.splitlines() if line]


def fit(rows):
    n = len(rows)
    mean_x = sum(x for x, _ in rows) / n
    mean_y = sum(y for _, y in rows) / n
    spread = sum((x - mean_x) ** 2 for x, _ in rows)
    a = sum((x - mean_x) * (y - mean_y) for x, y in rows) / spread
    return a, mean_y - a * mean_x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", required=True)
    parser.add_argument("--psql", action="store_true", help="read through the psql program")
    options = parser.parse_args()
    rows = (read_with_psql if options.psql else read_with_driver)(options.table)
    if len(rows) < 2:
        raise SystemExit(f"the table {options.table} has {len(rows)} rows; a line needs two")
    a, b = fit(rows)
    mse = sum((y - (a * x + b)) ** 2 for x, y in rows) / len(rows)
    print(f"rows={len(rows)} a={a:.4f} b={b:.4f} mse={mse:.6f}")
    model = os.path.join(os.environ.get("SM_MODEL_DIR", "."), "line.json")
    with open(model, "w") as file:
        json.dump({"a": a, "b": b}, file)


if __name__ == "__main__":
    main()
