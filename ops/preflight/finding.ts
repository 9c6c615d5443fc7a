/** What one check found. The remedy is one sentence that tells the operator what to do. */
export type Outcome = { check: string; detail: string } & (
  | { status: "ok" }
  | { status: "warning" | "error"; remedy: string }
);

/** The outcome of a check at a place: a chain of the networks file, or `all` for what concerns every chain. */
export type Finding = Outcome & { chain: string; endpoint?: string };

export type Status = Finding["status"];

/** Returns the outcome of a check that found nothing wrong. */
export function ok(check: string, detail: string): Outcome {
  return { check, status: "ok", detail };
}

/** Returns the outcome of a check whose problem does not prevent payments. */
export function warning(check: string, detail: string, remedy: string): Outcome {
  return { check, status: "warning", detail, remedy };
}

/** Returns the outcome of a check whose problem must be solved before going live. */
export function failure(check: string, detail: string, remedy: string): Outcome {
  return { check, status: "error", detail, remedy };
}

/** Returns a number with its noun, such as "1 block" or "2 blocks". */
export function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Returns the most severe status of all findings. */
export function worstStatus(findings: readonly Finding[]): Status {
  const severities: readonly Status[] = ["error", "warning"];
  return severities.find((one) => findings.some(({ status }) => status === one)) ?? "ok";
}
