import { privateKeyToAccount } from "viem/accounts";
import { confirm, createPayment, listOptions, signOption } from "../../../local/buyer-client.ts";
import { usdcAbi } from "../../../local/circle-artifacts.ts";
import type { KeyPair } from "../../../local/networks-document.ts";
import { beginOnEvm, changeAssetLimits, changeLimits, findException, shopOf, sql, waitForRow } from "../bed-actions.ts";
import { makeOperatorFiles } from "../operator-files.ts";
import type { RunbookCase } from "../runbook-case.ts";
import type { TestBed } from "../test-bed.ts";

const UNIT = 1_000_000n;

/** Sends tokens from an account on EVM. */
async function send({ stack }: TestBed, from: KeyPair, to: string, amount: bigint): Promise<void> {
  const { client, contracts } = stack.chain;
  await client.setBalance({ address: from.address, value: 10n ** 18n });
  const call = { address: contracts.token, abi: usdcAbi, functionName: "transfer", args: [to, amount] };
  const hash = await client.writeContract({ ...call, account: privateKeyToAccount(from.privateKey) } as never);
  await client.waitForTransactionReceipt({ hash });
}

/** Sends tokens of a buyer to the treasury, that no payment asks for. */
async function deposit(bed: TestBed, amount: bigint): Promise<void> {
  const { buyers, keys } = bed.stack.chain;
  const [buyer] = buyers.slice(-1);
  if (buyer) await send(bed, buyer, keys.treasury.address, amount);
}

/** Returns the id of the newest exception by the placeholders that stand for it, and a note. */
const exceptionValues = async (bed: TestBed) => {
  const id = await findException(bed);
  return { "<id>": id, "<exception>": id, "--note": "followed the runbook" };
};

const APPROVE =
  "refunds approve <refund> --asset <asset> --amount <amount> --receiver <sender> --transaction <hash> --sign <file> --as <name>";

/** Runbooks about money in the treasury and the ledger. */
export const moneyCases: readonly RunbookCase[] = [
  {
    runbook: "exceptions-open",
    alert: "MoneyInExceptions",
    what: "a buyer sends tokens that no payment asks for; they go back, with two approvals",
    shows: /unknown/,
    async inject(bed) {
      await deposit(bed, UNIT);
      const operators = await makeOperatorFiles(bed);
      const restore = await changeLimits(bed, { operators: operators.map(({ listed }) => listed) });
      const returned = "refund where exception_id is not null order by created_at desc limit 1";
      return {
        async values(command) {
          if (command === 0) return await exceptionValues(bed);
          const of = `(select * from ${returned}) as r join ledger_group as g on g.id = r.exception_id`;
          const { id, asset, receiver, tx_hash } = await waitForRow(
            bed,
            `select r.id, r.asset, r.receiver, g.tx_hash from ${of}`,
          );
          const { name = "", file = "" } = operators[command - 1] ?? {};
          const sent = { "<asset>": String(asset), "<amount>": String(UNIT), "<sender>": String(receiver) };
          return { "<refund>": String(id), ...sent, "<hash>": String(tx_hash), "<file>": file, "<name>": name };
        },
        result: () => waitForRow(bed, `select 1 from (select * from ${returned}) as r where state = 'paid'`, 120_000),
        cleanUp: restore,
      };
    },
    repair: ["exceptions return <id>", APPROVE, APPROVE],
  },
  {
    runbook: "bookings-failing",
    alert: "BookingsFailing",
    what: "a constraint of the database refuses every booking",
    shows: /runbook_fault/,
    async inject(bed) {
      await sql(bed, "alter table ledger_group add constraint runbook_fault check (id < 0) not valid");
      await beginOnEvm(bed);
      return { end: () => sql(bed, "alter table ledger_group drop constraint runbook_fault") };
    },
    repair: ["failed-bookings retry --all"],
  },
  {
    runbook: "inventory-short",
    alert: "InventoryShort",
    what: "a merchant who is paid in one token accepts another one, and the treasury has no inventory",
    shows: /inventory_short/,
    async inject(bed) {
      const { chain } = bed.stack;
      const [other = ""] = chain.otherAssets;
      const { merchantId } = bed.stack.file().live;
      const removed = `settlement_destination where merchant_id = '${merchantId}' and asset = '${other}'`;
      await sql(bed, `create table runbook_destination as select * from ${removed}; delete from ${removed}`);
      await sql(bed, `update settlement_destination set accepts_other_assets = true where asset = '${chain.asset}'`);
      const buyer = chain.buyers[2];
      if (!buyer) throw new Error("the stack has too few buyers");
      const id = await createPayment(shopOf(bed), { referenceId: "other asset", cents: "2000000" });
      const options = await listOptions(shopOf(bed), id, [`${chain.id}:${buyer.address}`]);
      const option = options.find(({ amount }) => amount.unit.toLowerCase() === `caip19/${other}`);
      if (!option)
        throw new Error(`no option in the other asset: ${JSON.stringify(options.map(({ amount }) => amount))}`);
      const results = await signOption(shopOf(bed), id, option, privateKeyToAccount(buyer.privateKey));
      await confirm(shopOf(bed), id, { optionId: option.id, results });
      return {
        end: () => deposit(bed, 20_000n * UNIT),
        values: () => exceptionValues(bed),
        result: () => waitForRow(bed, "select 1 from settlement where converted and state = 'paid'", 60_000),
        async cleanUp() {
          await sql(bed, "update settlement_destination set accepts_other_assets = false");
          await sql(
            bed,
            "insert into settlement_destination select * from runbook_destination; drop table runbook_destination",
          );
        },
      };
    },
    repair: ["ledger book-capital <exception> --note …"],
  },
  {
    runbook: "hot-balance",
    alert: "HotBalanceLow",
    what: "the floor is above the balance; a buyer's account stands in for the cold one",
    async inject(bed) {
      const hotBalance = { floor: String(100_000n * UNIT), ceiling: String(900_000n * UNIT) };
      const restore = await changeAssetLimits(bed, { hotBalance });
      return { end: () => deposit(bed, 100_000n * UNIT), values: () => exceptionValues(bed), cleanUp: restore };
    },
    repair: ["ledger book-cold <exception> --note …"],
  },
  {
    runbook: "hot-balance",
    alert: "HotBalanceHigh",
    what: "the ceiling is one minor unit, and the limits file names no cold address",
    async inject(bed) {
      await deposit(bed, UNIT);
      return { end: await changeAssetLimits(bed, { hotBalance: { floor: "0", ceiling: "1" } }) };
    },
  },
  {
    runbook: "ledger-mismatch",
    alert: "LedgerMismatch",
    what: "tokens leave the treasury by its key, and not by the service",
    withinMs: 360_000,
    endsWithinMs: 360_000,
    shows: /left/,
    async inject(bed) {
      const { keys, buyers } = bed.stack.chain;
      const [stranger] = buyers.slice(-1);
      await deposit(bed, UNIT);
      await send(bed, keys.treasury, stranger?.address ?? "", 10_000n);
      return { values: () => exceptionValues(bed) };
    },
    repair: ["ledger book-loss <exception> --note …"],
  },
];
