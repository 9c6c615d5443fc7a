/** Returns rows as lines with aligned columns. */
export function formatTable(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, index) =>
    Math.max(...rows.map((row) => (row[index] ?? "").length)),
  );
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** Returns named values as lines, without those that are undefined. */
export function formatMembers(members: Readonly<Record<string, string | undefined>>): string[] {
  return formatTable(Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** Returns the time of day of an instant in this time zone: `14:03:59`. */
export function formatTime(instant: string): string {
  return new Date(instant).toTimeString().slice(0, 8);
}
