import type { Check, Evidence } from "./payment-invariants.ts";

/** The maximum number of attempts of one payment. */
const MAX_ATTEMPTS_PER_PAYMENT = 40;
/** The maximum number of our transactions that may contain a payment without moving its money: one and two retries. */
const MAX_WASTED_TRANSACTIONS = 3;

/** Checks that a payer cannot waste our work or gas: attempts and transactions without a transfer are bounded. */
export const findCostlyPayments: Check = (evidence) => {
  const attempts = Map.groupBy(evidence.rows.attempts, ({ paymentId }) => paymentId);
  const many = [...attempts].filter(([, all]) => all.length > MAX_ATTEMPTS_PER_PAYMENT);
  return [
    ...many.map(([paymentId, all]) => `payment ${paymentId} has ${all.length} attempts`),
    ...listWasted(evidence)
      .filter(({ hashes }) => hashes.length > MAX_WASTED_TRANSACTIONS)
      .map(
        ({ paymentId, hashes }) =>
          `payment ${paymentId} was in ${hashes.length} transactions that did not move its money`,
      ),
  ];
};

/** Returns, for each payment, the transactions of our lanes that contain its authorization and did not move its money. */
function listWasted({ rows, evm }: Evidence): { paymentId: string; hashes: string[] }[] {
  if (evm === undefined) return [];
  const { transactions, transfers } = evm.scan;
  const moved = new Set(transfers.map(({ txHash, nonce }) => `${txHash} ${nonce}`));
  const nonces = new Map(rows.options.map(({ nonce, paymentId }) => [nonce, paymentId]));
  return [...nonces].map(([nonce, paymentId]) => {
    const named = transactions.filter(({ input }) => input.includes(nonce.slice(2).toLowerCase()));
    return { paymentId, hashes: named.flatMap(({ hash }) => (moved.has(`${hash} ${nonce}`) ? [] : [hash])) };
  });
}
