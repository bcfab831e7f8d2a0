CREATE TABLE points (x double precision NOT NULL, y double precision NOT NULL);
INSERT INTO points
SELECT i / 100.0, 3 * (i / 100.0) + 1 + (random() - 0.5) FROM generate_series(1, 1000) AS i;
