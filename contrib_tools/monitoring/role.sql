-- role.sql: the role of the exporter.  psql -X -f role.sql, as a superuser, in the database that has the extension.
--
-- It may log in and is a member of pg_monitor: nothing else.  Its name is that of the operating system's user that
-- Debian's exporter runs as, so that "peer" lets it in by the socket, without a password (-v role=NAME: another).
-- The limits are the server's, whatever the exporter's version: a scrape waits for nobody and ends.
\set ON_ERROR_STOP on
SET client_min_messages = warning; -- may run again
\if :{?role}
\else
	\set role prometheus
\endif

SELECT format('CREATE ROLE %I LOGIN', :'role')
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = :'role')
\gexec

GRANT pg_monitor TO :"role";

-- one connection a scrape and one that is kept; the rest is for a scrape that another one overtakes
ALTER ROLE :"role" CONNECTION LIMIT 5;
ALTER ROLE :"role" SET default_transaction_read_only = on;
ALTER ROLE :"role" SET statement_timeout = '2s';
ALTER ROLE :"role" SET lock_timeout = '200ms'; -- only DDL holds what these queries want
