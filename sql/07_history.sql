--
-- The history tables: what an insert by hand, a restore and a subscriber meet.
--
\set VERBOSITY terse
SET client_min_messages = error;
CREATE ROLE regress_ka_reader IN ROLE pg_monitor;
CREATE ROLE regress_ka_writer;
GRANT USAGE ON SCHEMA kernel_advisor TO regress_ka_writer;
GRANT SELECT, INSERT, DELETE ON kernel_advisor.checkpoint_history, kernel_advisor.advice_history TO regress_ka_writer;

-- the columns of the view, in its order, and one more
SELECT a.attname, a.atttypid::regtype
FROM pg_attribute a LEFT JOIN pg_attribute v
  ON v.attrelid = 'kernel_advisor.checkpoints'::regclass AND v.attname = a.attname AND v.attnum = a.attnum AND v.atttypid = a.atttypid
WHERE a.attrelid = 'kernel_advisor.checkpoint_history'::regclass AND a.attnum > 0 AND v.attname IS NULL;

-- reading is for pg_monitor, writing for whoever is granted it
SET ROLE regress_ka_reader;
SELECT count(*) >= 0 AS reads FROM kernel_advisor.checkpoint_history;
SELECT count(*) >= 0 AS reads FROM kernel_advisor.advice_history;
INSERT INTO kernel_advisor.advice_history (at, event, rule, severity, subject) VALUES (now(), 'appeared', 'r', 'info', 's');
DELETE FROM kernel_advisor.checkpoint_history;
UPDATE kernel_advisor.advice_history SET rule = 'x';
TRUNCATE kernel_advisor.checkpoint_history;
SELECT kernel_advisor.history_once();
RESET ROLE;

-- a row that is there is left out, whatever the search_path and whoever inserts
CREATE SCHEMA regress_ka_trap;
CREATE FUNCTION regress_ka_trap.never(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT 1/0 = 1';
CREATE OPERATOR regress_ka_trap.= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = regress_ka_trap.never);
CREATE TABLE regress_ka_trap.checkpoint_history (started_at timestamptz);
GRANT USAGE ON SCHEMA regress_ka_trap TO regress_ka_writer;
BEGIN;
SET LOCAL ROLE regress_ka_writer;
SET LOCAL search_path = regress_ka_trap, pg_catalog;
INSERT INTO kernel_advisor.checkpoint_history (checkpoint_id, started_at, recorded_at)
  VALUES (7, '2001-01-01', '2001-01-02'), (7, '2001-01-01', '2001-01-03'), (8, '2001-01-01', '2001-01-02'), (7, '2001-01-02', '2001-01-02');
INSERT INTO kernel_advisor.checkpoint_history (checkpoint_id, started_at, recorded_at)
  VALUES (7, '2001-01-01', '2001-01-04');
INSERT INTO kernel_advisor.advice_history (at, event, rule, severity, subject)
  VALUES ('2001-01-01', 'appeared', 'r', 'info', 's'), ('2001-01-01', 'appeared', 'r', 'info', 's'),
         ('2001-01-01', 'appeared', 'r', 'info', 't'), ('2001-01-02', 'changed', 'r', 'ok', 's');
RESET ROLE;
RESET search_path;
SELECT checkpoint_id, extract(day FROM started_at) AS day, extract(day FROM recorded_at) AS recorded
FROM kernel_advisor.checkpoint_history WHERE started_at < '2001-02-01' ORDER BY started_at, checkpoint_id;
SELECT extract(day FROM at) AS day, rule, subject, event FROM kernel_advisor.advice_history WHERE at < '2001-02-01' ORDER BY at, subject;

-- a table that is published keeps its deletes and updates
CREATE PUBLICATION regress_ka_all FOR ALL TABLES;
DELETE FROM kernel_advisor.checkpoint_history WHERE started_at < '2001-02-01';
DELETE FROM kernel_advisor.advice_history WHERE at < '2001-02-01';
DROP PUBLICATION regress_ka_all;
ROLLBACK;

-- the trigger is for these tables
INSERT INTO kernel_advisor.advice_history (at, event, rule, severity, subject) VALUES (now(), 'vanished', 'r', 'info', 's');
CREATE TABLE regress_ka_trap.other (a int);
CREATE TRIGGER t BEFORE INSERT ON regress_ka_trap.other FOR EACH ROW EXECUTE FUNCTION kernel_advisor.history_once('b');
INSERT INTO regress_ka_trap.other VALUES (1);
DROP TRIGGER t ON regress_ka_trap.other;
CREATE TRIGGER t BEFORE INSERT ON regress_ka_trap.other FOR EACH ROW EXECUTE FUNCTION kernel_advisor.history_once();
INSERT INTO regress_ka_trap.other VALUES (1);
DROP TRIGGER t ON regress_ka_trap.other;
CREATE TRIGGER t AFTER INSERT ON regress_ka_trap.other FOR EACH ROW EXECUTE FUNCTION kernel_advisor.history_once('a');
INSERT INTO regress_ka_trap.other VALUES (1);
DROP TRIGGER t ON regress_ka_trap.other;
CREATE TRIGGER t BEFORE INSERT ON regress_ka_trap.other FOR EACH ROW EXECUTE FUNCTION kernel_advisor.history_once('a');
INSERT INTO regress_ka_trap.other VALUES (1), (1), (NULL), (NULL), (2);
SELECT a FROM regress_ka_trap.other ORDER BY a;

DROP SCHEMA regress_ka_trap CASCADE;
REVOKE ALL ON kernel_advisor.checkpoint_history, kernel_advisor.advice_history FROM regress_ka_writer;
REVOKE ALL ON SCHEMA kernel_advisor FROM regress_ka_writer;
DROP ROLE regress_ka_reader, regress_ka_writer;
