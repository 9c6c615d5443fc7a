/**
 * Returns the height that counts as final by the heights that endpoints report: `atOnce`, and `afterWait` once the endpoints have been
 * waited for as long as one that is behind. Each is undefined when no height counts. A height counts when two endpoints have reached it.
 * A greater one that a single endpoint reports counts only after the wait, and never while two others report lower ones: an endpoint
 * that lies looks the same as one whose two others are stuck.
 */
export function decideFinalHeight(reported: readonly number[]): {
  atOnce: number | undefined;
  afterWait: number | undefined;
} {
  const [highest, second] = reported.toSorted((a, b) => b - a);
  return { atOnce: second, afterWait: reported.length > 2 ? second : highest };
}
