import type { Rows } from "../faults/database-rows.ts";
import type { ChainTransfer } from "../faults/evm-scan.ts";

/** The rows shortly before the loss, after the restore and before any process has started, and at the end. */
export type Snapshots = { before: Rows; restored: Rows; after: Rows };

/** One line of the drill's table. `found` of the forgotten rows were found on the chain and adopted. */
export type DrillLine = {
  what: string;
  before: number;
  restored: number;
  forgotten: number;
  found: number;
  /** What became of the others. */
  others: string;
};

const ids = (rows: readonly { id: string }[]) => new Set(rows.map(({ id }) => id));
const succeeded = ({ payments }: Rows) => ids(payments.filter(({ state }) => state === "succeeded"));
/** Returns the natural keys of the payouts that are known to have been made. */
const paidOut = ({ transfers }: Rows) =>
  new Set(transfers.filter((one) => one.purpose !== "payment" && one.state === "confirmed").map(({ nonce }) => nonce));
const hashes = ({ transactions }: Rows) => new Set(transactions.map(({ hash }) => hash));

/**
 * Returns what the restored database had forgotten, and what became of it.
 * @param outgoing the transfers out of the treasuries, which the chains know
 * @param assigned the number of exceptions that were assigned to the merchant
 */
export function describeForgotten(
  { before, restored, after }: Snapshots,
  { outgoing, assigned, losses }: { outgoing: readonly ChainTransfer[]; assigned: number; losses: number },
): DrillLine[] {
  const line = (what: string, of: (rows: Rows) => ReadonlySet<string>, others: (rest: Set<string>) => string) => {
    const forgotten = of(before).difference(of(restored));
    const found = forgotten.intersection(of(after));
    const rest = forgotten.difference(found);
    return {
      what,
      before: of(before).size,
      restored: of(restored).size,
      forgotten: forgotten.size,
      found: found.size,
      others: rest.size === 0 ? "" : others(rest),
    };
  };
  const known = ids(restored.payments);
  const onChain = new Set(outgoing.map(({ nonce }) => nonce ?? ""));
  return [
    line(
      "payments created",
      ({ payments }) => ids(payments),
      (rest) => `${rest.size} are gone; those that were paid are in the next line`,
    ),
    line("payments succeeded", succeeded, (rest) => {
      const gone = rest.difference(known).size;
      // A payment that is known becomes succeeded when its money is found, unless the quote that was paid is forgotten.
      const unquoted = rest.size === gone ? "" : `, ${rest.size - gone} without the quote that was paid`;
      return `${gone} are gone${unquoted}; the money of ${assigned} payments was assigned to the merchant`;
    }),
    line("payouts made", paidOut, (rest) => `${rest.intersection(onChain).size} on the chain without an owner`),
    line("transactions stored", hashes, () => `native fees of lanes booked as losses: ${losses}`),
  ];
}
