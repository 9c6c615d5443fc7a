import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of Postgres as the processes see it. */
export const createDatabaseMetrics = ({ counter, gauge, histogram, systemGauge }: MetricFactory) => ({
  sqlStatements: counter("pay_sql_statements_total", "SQL statements sent", ["outcome"]),
  sqlSeconds: histogram(
    "pay_sql_statement_duration_seconds",
    "Duration of SQL statements",
    [],
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
  ),
  poolConnections: gauge("pay_db_pool_connections", "Connections of this process's pool", ["state"]),
  replicaReads: counter(
    "pay_replica_reads_total",
    "Reads for which a replica is configured: served by it, or the reason why the primary served them",
    ["outcome"],
  ),
  replicaLagSeconds: gauge(
    "pay_replica_lag_seconds",
    "Age of the data of the replica, to a second; infinite while it cannot be measured; absent without a replica",
    ["serves"],
  ),
  gaugesRead: gauge(
    "pay_gauges_read_timestamp_seconds",
    "Time when this worker last read a group of the system-wide gauges, or of its start",
    ["group"],
  ),
  databaseWalPosition: systemGauge("pay_database_wal_position_bytes", "Bytes of WAL that the primary has ever written"),
  databaseLostCommits: systemGauge(
    "pay_database_lost_commits_timestamp_seconds",
    "Time when the database was last found to have lost committed transactions; absent when it never did",
  ),
  auditHeadAgeSeconds: systemGauge(
    "pay_audit_head_unexported_age_seconds",
    "Age of the oldest head of the audit log that AUDIT_SINK has not accepted; 0 when it has accepted all",
  ),
  auditEntryAgeSeconds: systemGauge(
    "pay_audit_entry_without_head_age_seconds",
    "Age of the oldest entry of the audit log that no head covers; 0 when there is none",
  ),
  auditLoginEntries: systemGauge(
    "pay_audit_login_entries",
    "Changes of the last 24 hours that were written with a login of the database and without the service",
  ),
  signerLogContradicted: systemGauge(
    "pay_signer_log_contradicted",
    "1 while the signer's audit log lacks its earlier newest entry, or has another one in its place",
  ),
  retentionRemoved: counter(
    "pay_retention_rows_removed_total",
    "Rows of history that have left after their retention",
    ["relation"],
  ),
  retentionFailures: counter(
    "pay_retention_failures_total",
    "Runs that could not remove or export history; the rows are still there",
  ),
  retentionBehindSeconds: systemGauge(
    "pay_retention_behind_seconds",
    "For how long rows of history could have left; 0 when none can, or when they stay forever",
    ["relation"],
  ),
  retentionFailing: systemGauge("pay_retention_failing_payments", "Payments whose history cannot be removed", [
    "relation",
  ]),
  chainRereadPending: systemGauge(
    "pay_chain_reread_pending",
    "1 while a chain has to be read again because the database lost committed transactions; nothing is signed on it",
    ["chain"],
  ),
});
