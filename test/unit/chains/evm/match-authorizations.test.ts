import fc from "fast-check";
import { encodeAbiParameters, type Hex, numberToHex, pad, type RpcLog } from "viem";
import { describe, expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import { readTransferLogs } from "../../../../chains/evm/transfer-logs.ts";

const address = (digits: string): Hex => `0x${digits.repeat(20)}`;
const [token, treasury, payer] = [address("70"), address("7e"), address("aa")];
const [merchant, issuer, self] = [address("bb"), address("fe"), payer];
const contracts = { collector: address("c0"), disburser: address("d1"), treasury };

/** A log of the token, without its place. */
type Entry = Pick<RpcLog, "topics" | "data">;
const used = (nonce: number, by = payer): Entry => ({
  topics: [AUTHORIZATION_USED_TOPIC, pad(by), numberToHex(nonce, { size: 32 })],
  data: "0x",
});
const moved = (to: Hex, amount: bigint, from = payer): Entry => ({
  topics: [TRANSFER_TOPIC, pad(from), pad(to)],
  data: encodeAbiParameters([{ type: "uint256" }], [amount]),
});

/** Returns the number of the nonce of each movement in a transaction with these logs; 0 for a movement without one. */
function readNonces(entries: readonly Entry[]): number[] {
  const place = { address: token, blockHash: numberToHex(1, { size: 32 }), blockNumber: "0x10", removed: false };
  const logs = entries.map((entry, index) => ({
    ...{ ...place, ...entry, logIndex: numberToHex(index) },
    transactionHash: numberToHex(2, { size: 32 }),
  }));
  return readTransferLogs(logs as unknown as RpcLog[], contracts).map((one) => Number(one.authorizationNonce ?? 0));
}

describe("the authorizations of one payer in one transaction", () => {
  test.each<[string, Entry[], number[]]>([
    [
      "a transfer of zero uses the first nonce and a second one pays",
      [used(1), moved(self, 0n), used(2), moved(treasury, 5n)],
      [2],
    ],
    [
      "a payment is followed by the use of another nonce for a transfer of zero",
      [used(1), moved(treasury, 5n), used(2), moved(self, 0n)],
      [1],
    ],
    [
      "money that no authorization moved comes first, and a nonce is used for zero last",
      [moved(treasury, 5n), used(1), moved(treasury, 5n), used(2), moved(self, 0n)],
      [0, 1],
    ],
    [
      "a payment to a merchant's account is followed by one into the treasury",
      [used(1), moved(merchant, 5n), used(2), moved(treasury, 5n)],
      [1, 2],
    ],
    [
      "several nonces are used for zero around one payment",
      [used(1), moved(self, 0n), used(2), moved(treasury, 5n), used(3), moved(self, 0n), used(4), moved(self, 0n)],
      [2],
    ],
    ["a nonce is used last and moves nothing that is logged", [used(1), moved(treasury, 5n), used(2)], [1]],
  ])("have exactly the movement that each has made when %s", (_what, entries, nonces) => {
    expect(readNonces(entries)).toEqual(nonces);
  });

  test.each<[string, Entry[], number[]]>([
    [
      "is paid before each payment",
      [used(1), moved(issuer, 1n), moved(treasury, 5n), used(2), moved(issuer, 1n), moved(treasury, 6n)],
      [1, 1, 2, 2],
    ],
    [
      "is paid after each payment",
      [used(1), moved(treasury, 5n), moved(issuer, 1n), used(2), moved(treasury, 6n), moved(issuer, 1n)],
      [1, 1, 2, 2],
    ],
    [
      "is paid before each payment, whose authorization is logged last",
      [moved(issuer, 1n), moved(treasury, 5n), used(1), moved(issuer, 1n), moved(treasury, 6n), used(2)],
      [1, 1, 2, 2],
    ],
    [
      "is paid after each payment, and the authorization is logged last",
      [moved(treasury, 5n), moved(issuer, 1n), used(1), moved(treasury, 6n), moved(issuer, 1n), used(2)],
      [1, 1, 2, 2],
    ],
    ["is paid after the only payment and its authorization", [moved(treasury, 5n), used(1), moved(issuer, 1n)], [1, 1]],
    [
      "is paid before each payment to a merchant's account",
      [used(1), moved(issuer, 1n), moved(merchant, 5n), used(2), moved(issuer, 1n), moved(merchant, 6n)],
      [1, 1, 2, 2],
    ],
  ])("have their payments when the issuer's fee %s", (_when, entries, nonces) => {
    expect(readNonces(entries)).toEqual(nonces);
  });

  test("leave out all movements into the treasury but the nearest one", () => {
    expect(readNonces([used(1), moved(treasury, 5n), moved(treasury, 9n)])).toEqual([1, 0]);
    expect(readNonces([moved(treasury, 9n), moved(treasury, 5n), used(1)])).toEqual([0, 1]);
    expect(readNonces([moved(treasury, 9n), used(1), moved(treasury, 5n), moved(treasury, 7n)])).toEqual([0, 1, 0]);
  });

  test("name a payment to a merchant's account also beside a movement into the treasury", () => {
    expect(readNonces([used(1), moved(merchant, 5n), moved(treasury, 1n)])).toEqual([1, 1]);
  });
});

test("the largest movement of the treasury has the nonce of its payout, and the issuer's fee has none", () => {
  const pay = (amount: bigint) => [moved(issuer, 1n, treasury), moved(merchant, amount, treasury)];
  expect(readNonces([used(1, treasury), ...pay(5n), used(2, treasury), ...pay(6n)])).toEqual([0, 1, 0, 2]);
});

test("a stranger's transfers of zero in the treasury's name change no nonce of its payouts", () => {
  const payouts = [moved(merchant, 5n, treasury), used(1, treasury), moved(merchant, 6n, treasury), used(2, treasury)];
  expect(readNonces([...payouts, moved(issuer, 0n, treasury)])).toEqual([1, 2]);
});

/** A call of the token: a transfer by authorization, or another transfer of the payer. */
const call = fc.record({
  to: fc.constantFrom(treasury, merchant, issuer),
  amount: fc.bigInt({ min: 0n, max: 3n }),
  authorized: fc.boolean(),
});
type Call = { to: Hex; amount: bigint; authorized: boolean };
const logsOf = (calls: readonly Call[], isUsedLast: boolean): Entry[] =>
  calls.flatMap(({ to, amount, authorized }, index) => {
    const logs = authorized ? [used(index + 1), moved(to, amount)] : [moved(to, amount)];
    return isUsedLast ? logs.toReversed() : logs;
  });

test("whatever else a transaction moves, each authorized transfer has its own nonce", () => {
  const property = fc.property(fc.array(call, { maxLength: 8 }), fc.boolean(), (calls, isUsedLast) => {
    // After the last authorization of a token that emits AuthorizationUsed last, other transfers hide the order of its logs.
    fc.pre(!isUsedLast || calls.at(-1)?.authorized === true);
    const nonces = readNonces(logsOf(calls, isUsedLast));
    const seen = calls.flatMap((one, index) => (one.amount > 0n ? [{ ...one, nonce: index + 1 }] : []));
    for (const [index, { authorized, nonce }] of seen.entries()) if (authorized) expect(nonces[index]).toBe(nonce);
  });
  fc.assert(property, { numRuns: 2_000 });
});

test("whatever else a transaction moves, no nonce has two movements into the treasury", () => {
  const property = fc.property(fc.array(call, { maxLength: 8 }), fc.boolean(), (calls, isUsedLast) => {
    const nonces = readNonces(logsOf(calls, isUsedLast));
    const seen = calls.filter(({ amount }) => amount > 0n);
    const deposits = nonces.filter((nonce, index) => nonce > 0 && seen[index]?.to === treasury);
    expect(new Set(deposits).size).toBe(deposits.length);
  });
  fc.assert(property, { numRuns: 2_000 });
});
