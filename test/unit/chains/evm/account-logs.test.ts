import { type Hex, pad } from "viem";
import { expect, test } from "vitest";
import { TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import {
  isWatched,
  listFilters,
  MAX_ACCOUNTS_PER_CALL,
  type WatchedAccounts,
} from "../../../../chains/evm/account-logs.ts";
import { isSelected } from "../../../../chains/evm/read-logs.ts";

const address = (number: number): Hex => pad(`0x${number.toString(16)}`, { size: 20 });
const [token, treasury, stranger] = [address(1), address(2), address(3)];

function watch(count: number): WatchedAccounts {
  const receivers = Array.from({ length: count }, (_, index) => address(1_000 + index));
  return {
    contracts: { collector: address(4), disburser: address(5), treasury },
    tokens: [token],
    receivers: new Set<string>([treasury, ...receivers]),
  };
}

const transfer = (payer: Hex, receiver: Hex, of = token) => ({
  address: of,
  topics: [TRANSFER_TOPIC, pad(payer), pad(receiver)] as [Hex, Hex, Hex],
});

test.each([0, 1, MAX_ACCOUNTS_PER_CALL - 1, MAX_ACCOUNTS_PER_CALL, 3 * MAX_ACCOUNTS_PER_CALL])(
  "the filters for %i accounts select their transfers and no others, and none of them names too many accounts",
  (count) => {
    const accounts = watch(count);
    const filters = listFilters(accounts);
    expect(filters).toHaveLength(1 + Math.ceil((count + 1) / MAX_ACCOUNTS_PER_CALL));
    for (const { topics } of filters)
      for (const any of topics) expect(any?.length ?? 0).toBeLessThanOrEqual(MAX_ACCOUNTS_PER_CALL);
    const isFound = (log: ReturnType<typeof transfer>) => filters.some((filter) => isSelected(log, filter));
    for (const receiver of accounts.receivers) expect(isFound(transfer(stranger, receiver as Hex))).toBe(true);
    expect(isFound(transfer(treasury, stranger))).toBe(true);
    expect(isFound(transfer(stranger, address(999)))).toBe(false);
    expect(isFound(transfer(stranger, treasury, address(9)))).toBe(false);
    // Movements out of a merchant's own account are none of ours.
    expect(isFound(transfer(address(1_000), stranger))).toBe(false);
  },
);

test("a movement that an endpoint returns without being asked for is not one of ours", () => {
  const of = (payer: Hex, receiver: Hex, one = token) => ({ payer, receiver, token: one });
  expect(isWatched(watch(1), of(stranger, treasury))).toBe(true);
  expect(isWatched(watch(1), of(treasury, stranger))).toBe(true);
  expect(isWatched(watch(1), of(stranger, address(1_000)))).toBe(true);
  expect(isWatched(watch(1), of(stranger, address(999)))).toBe(false);
  expect(isWatched(watch(1), of(stranger, treasury, address(9)))).toBe(false);
});
