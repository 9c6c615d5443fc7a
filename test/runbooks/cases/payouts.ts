import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ask } from "../../../local/buyer-client.ts";
import { usdcAbi } from "../../../local/circle-artifacts.ts";
import { newKey } from "../../../local/networks-document.ts";
import {
  beginOnEvm,
  changeAssetLimits,
  changeLimits,
  shopOf,
  sql,
  waitForRow,
  waitForSuccess,
  whileStopped,
} from "../bed-actions.ts";
import type { Injected, RunbookCase } from "../runbook-case.ts";
import type { TestBed } from "../test-bed.ts";

/** Asks, with the merchant's key, to pay its first asset to another account after three days. */
async function requestOtherDestination(bed: TestBed): Promise<Injected> {
  const { chain } = bed.stack;
  const { merchantId } = bed.stack.file().live;
  const restoreAccount = await changeWaitingHours(bed, 72);
  const restoreSigner = await changeLimits(bed, { destinationWaitingHours: 72 });
  const destinations = `settlement_destination where merchant_id = '${merchantId}' and asset = '${chain.asset}'`;
  const { id } = await waitForRow(bed, `select id from ${destinations}`);
  await ask(shopOf(bed), "PUT", `/v1/merchants/${merchantId}/settlements/crypto/${id}`, {
    destination: `${chain.id}:${newKey().address}`,
  });
  return {
    async values() {
      const change = await waitForRow(bed, "select id from destination_change where state = 'requested'");
      return { "<change>": String(change["id"]) };
    },
    cleanUp: () => Promise.all([restoreAccount(), restoreSigner()]),
  };
}

/** Sets how long a change of a destination waits. Returns what sets it back. */
async function changeWaitingHours(bed: TestBed, hours: number): Promise<() => Promise<unknown>> {
  const [{ before } = { before: 0 }] = await sql(bed, "select max(destination_waiting_hours) as before from account");
  await sql(bed, `update account set destination_waiting_hours = ${hours}`);
  return () => sql(bed, `update account set destination_waiting_hours = ${before}`);
}

/** Runbooks about payouts and the signer. */
export const payoutCases: readonly RunbookCase[] = [
  {
    runbook: "payouts-held",
    alert: "PayoutsHeld",
    what: "the token's issuer blocks the merchant's account",
    shows: /blacklisted/,
    async inject(bed) {
      const { client, contracts, destination } = bed.stack.chain;
      const call = (functionName: "blacklist" | "unBlacklist") =>
        client.writeContract({ address: contracts.token, abi: usdcAbi, functionName, args: [destination] } as never);
      await call("blacklist");
      await beginOnEvm(bed);
      return { end: () => call("unBlacklist") };
    },
  },
  {
    runbook: "destination-changes",
    alert: "SignerDestinationWaits",
    what: "the merchant's API key asks for another account, and workers report it to the signer",
    shows: /requested/,
    inject: requestOtherDestination,
    repair: ["destinations reject <change>"],
  },
  {
    runbook: "destination-changes",
    alert: "DestinationChangeRequested",
    what: "the same",
    shows: /requested/,
    inject: requestOtherDestination,
    repair: ["destinations reject <change>"],
  },
  {
    runbook: "signer-down",
    alert: "SignerPaused",
    what: "the limits file pauses the signer",
    inject: async (bed) => ({ end: await changeLimits(bed, { paused: true }) }),
  },
  {
    runbook: "settlement-overdue",
    alert: "SettlementOverdue",
    what: "the signer is paused, and the payout that waits is made two hours old",
    shows: /setl_|paused/,
    async inject(bed) {
      const restore = await changeLimits(bed, { paused: true });
      const { id } = await beginOnEvm(bed);
      const waiting = `settlement where state = 'due' and id = (select settlement_id from payment where id = '${id}')`;
      await waitForRow(bed, `select id from ${waiting}`);
      await pause(3_000);
      await sql(
        bed,
        "update settlement set created_at = created_at - interval '2 hours', closed_at = closed_at - interval '2 hours' where state <> 'paid'",
      );
      return { end: restore, values: async () => ({ PAYMENT: id }) };
    },
    repair: ["payments retry PAYMENT"],
  },
  {
    runbook: "signer-refuses",
    alert: "SignerHoldsPayouts",
    what: "a limit of the signer is one minor unit",
    shows: /limit_payout/,
    async inject(bed) {
      const restore = await changeAssetLimits(bed, { perPayout: "1" });
      await beginOnEvm(bed);
      return { end: restore };
    },
  },
  {
    runbook: "signer-refuses",
    alert: "SignerRefuses",
    what: "a merchant's payouts are held; a thief writes a transaction that does not exist into the row of their deposit, and the hold ends",
    shows: /deposit_not_found/,
    async inject(bed) {
      // A deposit is claimed when its payout is asked for. The merchant's payouts are held until the row is false.
      const setHold = (at: string) =>
        sql(bed, `update merchant set payouts_held_at = ${at} where id = '${shopOf(bed).caller.merchantId}'`);
      await setHold("now()");
      const { id } = await beginOnEvm(bed);
      await waitForSuccess(bed, id);
      const deposit = `transfer_id in (select id from transfer where payment_id = '${id}' and purpose = 'payment')`;
      const { tx_hash: hash } = await waitForRow(bed, `select tx_hash from observation where ${deposit}`);
      const write = (txHash: unknown) => sql(bed, `update observation set tx_hash = '${txHash}' where ${deposit}`);
      const makeDue = () => sql(bed, "update payout_queue set due_at = now() where due_at is not null");
      await write(`0x${"0".repeat(64)}`);
      await setHold("null");
      await makeDue();
      return {
        async end() {
          await write(hash);
          await makeDue();
        },
        values: async () => ({ PAYMENT: id }),
      };
    },
  },
  {
    runbook: "signer-log",
    alert: "SignerLogContradicted",
    what: "the signer is started with an older copy of its store; then with the newer one",
    withinMs: 240_000,
    endsWithinMs: 240_000,
    shows: /contradicted/,
    async inject(bed) {
      const folder = bed.stack.dir;
      const files = ["signer.sqlite", "signer.sqlite-wal", "signer.sqlite-shm"];
      const copy = (from: string, to: string) => async () => {
        for (const file of files) {
          await rm(join(folder, `${file}${to}`), { force: true });
          await cp(join(folder, `${file}${from}`), join(folder, `${file}${to}`)).catch(() => undefined);
        }
      };
      await whileStopped(bed, ["signer"], copy("", ".older"));
      const [before] = await sql(bed, "select count(*) from audit_entry where subject = 'signer-log'");
      await beginOnEvm(bed);
      await waitForRow(
        bed,
        `select 1 from audit_entry where subject = 'signer-log' having count(*) > ${before?.["count"]}`,
        200_000,
      );
      await whileStopped(bed, ["signer"], async () => {
        await copy("", ".newer")();
        await copy(".older", "")();
      });
      return { end: () => whileStopped(bed, ["signer"], copy(".newer", "")) };
    },
  },
];
