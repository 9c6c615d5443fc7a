import type { Node } from "libpg-query";
import { versionOf } from "../db/schema-version.ts";
import { listCheckedColumns } from "./checked-columns.ts";
import type { Finding } from "./migration-findings.ts";
import { listAdded, reviewStatement } from "./statement-rules.ts";

/** A migration with its parsed statements and what it declares (see `OurMigration` in db/migrate.ts). */
export type ParsedMigration = {
  name: string;
  statements: readonly Node[];
  contracts?: string | undefined;
  documented?: Readonly<Record<string, string>> | undefined;
};

/**
 * Returns what is wrong with the migrations, in the order of their names: what the former release cannot work with, and
 * declarations that are wrong or allow nothing. The migrations of the first version create the schema, and may do anything.
 */
export function findMigrationErrors(migrations: readonly ParsedMigration[]): string[] {
  const versions = [...new Set(migrations.map(({ name }) => versionOf(name)))];
  const first = Math.min(...versions);
  const gaps = versions.filter((version) => version !== first && !versions.includes(version - 1));
  return [
    ...gaps.map((version) => `version ${version} does not follow another one: each release takes the next number`),
    ...migrations
      .filter(({ name }) => versionOf(name) !== first)
      .flatMap((migration) => reviewMigration(migration, migrations).map((error) => `${migration.name} ${error}`)),
  ];
}

function reviewMigration(migration: ParsedMigration, all: readonly ParsedMigration[]): string[] {
  const { contracts, documented = {} } = migration;
  const findings = reviewStatements(migration, all.slice(0, all.indexOf(migration)));
  const explained = new Set(
    findings.flatMap(({ allowedBy }) => (typeof allowedBy === "object" ? allowedBy.documented : [])),
  );
  return [
    ...findings.filter((finding) => !isAllowed(finding, migration)).map(describeFinding),
    ...Object.keys(documented)
      .filter((name) => !explained.has(name) || !documented[name])
      .map((name) => `documents ${name}, which needs no explanation or has none`),
    ...(contracts === undefined ? [] : reviewContraction(migration, contracts, findings, all)),
  ];
}

/** Each statement may rely on what those before it have added, and not on what follows. */
function reviewStatements({ name, statements }: ParsedMigration, earlier: readonly ParsedMigration[]): Finding[] {
  const before = earlier.flatMap((one) => one.statements);
  const ofRelease = earlier.filter((one) => versionOf(one.name) === versionOf(name)).flatMap((one) => one.statements);
  const checkedBefore = listCheckedColumns(before);
  return statements.flatMap((statement, index) => {
    const added = new Set([...ofRelease, ...statements.slice(0, index)].flatMap(listAdded));
    const checked = checkedBefore.intersection(listCheckedColumns([...before, ...statements.slice(0, index + 1)]));
    return reviewStatement(statement, { added, checked });
  });
}

function isAllowed({ allowedBy }: Finding, { contracts, documented = {} }: ParsedMigration): boolean {
  if (allowedBy === undefined) return false;
  if (allowedBy === "contracts") return contracts !== undefined;
  return Object.hasOwn(documented, allowedBy.documented);
}

function describeFinding({ problem, allowedBy }: Finding): string {
  if (allowedBy === undefined) return problem;
  if (allowedBy === "contracts") return `${problem}, and does not declare \`contracts\``;
  return `${problem}, and does not explain ${allowedBy.documented} in \`documented\``;
}

/** `contracts` names a migration of the release that stopped using what this one removes: that of an earlier version. */
function reviewContraction(
  { name }: ParsedMigration,
  contracts: string,
  findings: readonly Finding[],
  all: readonly ParsedMigration[],
): string[] {
  if (!findings.some(({ allowedBy }) => allowedBy === "contracts")) return ["declares `contracts` and removes nothing"];
  const named = all.find((one) => one.name === contracts);
  if (named === undefined) return [`declares \`contracts\` with ${contracts}, which is no migration`];
  return versionOf(contracts) < versionOf(name)
    ? []
    : [`declares \`contracts\` with ${contracts}, which is not of an earlier release`];
}
