import type { Check } from "./invariants.ts";
import { listOurs, repeated, sumBy } from "./moved.ts";

/**
 * Each number of a payout moves money once at most, whatever became of the database; a merchant has received exactly what
 * the books call paid; and never more leaves a treasury than has come in.
 */
export const findBadPayouts: Check = (evidence) => {
  const { rows, history } = evidence;
  const { inwards, outwards } = listOurs(evidence);
  const numbers = outwards.flatMap(({ token, nonce }) => (nonce === null ? [] : [`${token} ${nonce}`]));
  const paid = rows.settlements.filter(({ mode, state }) => mode === "live" && state === "paid");
  const booked = sumBy(
    paid.map(({ asset, destination, amount }) => ({ key: keyOf(asset, destination ?? ""), amount })),
    ({ key }) => key,
  );
  const received = sumBy(outwards, ({ token, to }) => `${token} ${to}`);
  const wrong = [...new Set([...booked.keys(), ...received.keys()])].flatMap((key) => {
    const [onChain, inBooks] = [received.get(key) ?? 0n, booked.get(key) ?? 0n];
    // What was paid in a time whose commits are lost may stand among the exceptions.
    const isRight = history.lost.length === 0 ? onChain === inBooks : onChain >= inBooks;
    return isRight ? [] : [`${key} has received ${onChain}, and the books say ${inBooks}`];
  });
  const [into, out] = [inwards, outwards].map((logs) => sumBy(logs, ({ token }) => token));
  return [
    ...repeated(numbers).map((number) => `the payout ${number} was made twice`),
    ...wrong,
    ...[...(out ?? [])].flatMap(([token, sum]) => {
      const came = into?.get(token) ?? 0n;
      return sum <= came ? [] : [`${sum} of ${token} have left the treasury, and ${came} had come in`];
    }),
  ];
};

/** Token and receiver as the chain names them, of a CAIP-19 asset and a CAIP-10 account. */
function keyOf(asset: string, account: string): string {
  const receiver = account.slice(account.lastIndexOf(":") + 1);
  const token = asset.slice(asset.lastIndexOf(":") + 1);
  return `${token} ${asset.startsWith("eip155:") ? receiver.toLowerCase() : receiver}`;
}
