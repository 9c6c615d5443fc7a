import { parseAbiItem } from "viem";
import { expect } from "vitest";
import type { TestChain } from "./chain.ts";
import type { Fleet } from "./fleet.ts";
import { execute } from "./sql.ts";
import { waitFor } from "./wait-for.ts";

const transferEvent = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

/** Waits until every payment has its end and every payout has arrived. */
export async function waitQuiet(fleet: Fleet, within = 60_000): Promise<void> {
  const open = async () => {
    const [row] = await execute(
      fleet.databaseUrl,
      `select (select count(*) from payment where state = 'processing')
        + (select count(*) from attempt where state = 'waiting')
        + (select count(*) from settlement where state <> 'paid') as open`,
    );
    return Number(row?.open) === 0;
  };
  await waitFor(open, { within, what: "everything is final and paid out", every: 200 });
}

/**
 * What must hold when the dust has settled, asked of Postgres by SQL and of the chain by its logs, with no code of the
 * service in between: money in once per succeeded payment and never else, money out once per payout, books that balance
 * and agree with the chain.
 */
export async function expectSound(fleet: Fleet, chain: TestChain, args: { succeeded: number }): Promise<void> {
  const into = await readTransfers(chain, { to: chain.keys.treasury.address });
  const outOf = await readTransfers(chain, { from: chain.keys.treasury.address });
  const payments = await execute(
    fleet.databaseUrl,
    "select id, state, tx_id, paid_amount::text as amount from payment where mode = 'live'",
  );
  const paid = payments.filter((payment) => payment.state === "succeeded");
  expect(paid, "payments that succeeded").toHaveLength(args.succeeded);
  expect(into, "transfers into the treasury").toHaveLength(args.succeeded);
  expect(
    sorted(paid.map((payment) => `${payment.tx_id} ${payment.amount}`)),
    "each payment names its own transfer",
  ).toEqual(sorted(into.map((log) => `${log.transactionHash} ${log.args.value}`)));
  const settlements = await execute(fleet.databaseUrl, "select state, amount::text as amount from settlement");
  expect(outOf, "transfers out of the treasury").toHaveLength(settlements.length);
  expect(settlements, "payouts").toHaveLength(args.succeeded);
  expect(new Set(settlements.map((row) => row.state)), "states of payouts").toEqual(
    new Set(args.succeeded > 0 ? ["paid"] : []),
  );

  const unbalanced = await execute(
    fleet.databaseUrl,
    "select group_id from ledger_entry group by group_id, asset having sum(amount) <> 0",
  );
  expect(unbalanced, "ledger groups that do not sum to zero").toEqual([]);
  const [treasury] = await execute(
    fleet.databaseUrl,
    "select coalesce(sum(amount), 0)::text as amount from ledger_entry where account = 'treasury'",
  );
  const sum = (logs: { args: { value: bigint } }[]) => logs.reduce((total, log) => total + log.args.value, 0n);
  expect(BigInt(String(treasury?.amount)), "the treasury by the ledger and by the chain").toBe(sum(into) - sum(outOf));

  const nonces = await execute(
    fleet.databaseUrl,
    "select lane_id, count(distinct nonce)::int as used, max(nonce)::int - min(nonce)::int + 1 as span from transaction group by lane_id",
  );
  for (const lane of nonces) expect(lane.used, "a lane's nonces leave no gap").toBe(lane.span);
}

async function readTransfers(chain: TestChain, args: { from?: `0x${string}`; to?: `0x${string}` }) {
  return chain.client.getLogs({
    address: chain.contracts.token,
    event: transferEvent,
    args,
    fromBlock: chain.since,
    strict: true,
  });
}

const sorted = (values: string[]) => values.toSorted();
