import { findDuplicates, listTreasuryMovements, sumBy } from "./list-movements.ts";
import type { Check } from "./payment-invariants.ts";

/**
 * Checks that each payout nonce moves money at most once, even after lost commits; that a merchant received exactly what
 * the rows mark as paid; and that withdrawals from a treasury never exceed its deposits.
 */
export const findPayoutErrors: Check = (evidence) => {
  const { rows, history } = evidence;
  const { incoming, outgoing } = listTreasuryMovements(evidence);
  const nonces = outgoing.flatMap(({ token, nonce }) => (nonce === null ? [] : [`${token} ${nonce}`]));
  const paid = rows.settlements.filter(({ mode, state }) => mode === "live" && state === "paid");
  const booked = sumBy(
    paid.map(({ asset, destination, amount }) => ({ key: keyOf(asset, destination ?? ""), amount })),
    ({ key }) => key,
  );
  const received = sumBy(outgoing, ({ token, to }) => `${token} ${to}`);
  const wrong = [...new Set([...booked.keys(), ...received.keys()])].flatMap((key) => {
    const [onChain, inRows] = [received.get(key) ?? 0n, booked.get(key) ?? 0n];
    // A payout whose commit was lost may be among the exceptions.
    const isRight = history.lost.length === 0 ? onChain === inRows : onChain >= inRows;
    return isRight ? [] : [`${key} has received ${onChain} on the chain and ${inRows} in the rows`];
  });
  const [into, out] = [incoming, outgoing].map((logs) => sumBy(logs, ({ token }) => token));
  return [
    ...findDuplicates(nonces).map((nonce) => `the payout ${nonce} was made twice`),
    ...wrong,
    ...[...(out ?? [])].flatMap(([token, sum]) => {
      const came = into?.get(token) ?? 0n;
      return sum <= came ? [] : [`${sum} of ${token} have left the treasury, which had received ${came}`];
    }),
  ];
};

/** Returns token and receiver as the chain writes them, from a CAIP-19 asset and a CAIP-10 account. */
function keyOf(asset: string, account: string): string {
  const receiver = account.slice(account.lastIndexOf(":") + 1);
  const token = asset.slice(asset.lastIndexOf(":") + 1);
  return `${token} ${asset.startsWith("eip155:") ? receiver.toLowerCase() : receiver}`;
}
