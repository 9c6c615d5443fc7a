import { confirm, createPayment, listOptions } from "../../../local/buyer-client.ts";
import { armBurners, deployBlockBurner, type GasBurner } from "../../support/gas-burners.ts";
import { beginOnEvm, shopOf, waitForSuccess } from "../bed-actions.ts";
import type { RunbookCase } from "../runbook-case.ts";
import type { TestBed } from "../test-bed.ts";

const GWEI = 1_000_000_000n;

async function mineAt({ stack }: TestBed, baseFeePerGas: bigint): Promise<void> {
  const { client } = stack.chain;
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas });
  await client.mine({ blocks: 1 });
}

/** Makes a block each second, as a chain does. Returns what ends it. */
function keepMining({ stack }: TestBed): () => Promise<unknown> {
  const timer = setInterval(() => void stack.chain.client.mine({ blocks: 1 }).catch(() => undefined), 1_000);
  return async () => clearInterval(timer);
}

/** Prepares a payment of a contract wallet, whose own code decides which signatures it accepts. Returns what confirms it. */
async function prepareAsWallet(bed: TestBed, address: string): Promise<() => Promise<unknown>> {
  const id = await createPayment(shopOf(bed), { referenceId: address, cents: "500" });
  const [option] = await listOptions(shopOf(bed), id, [`${bed.stack.chain.id}:${address}`]);
  if (!option) throw new Error("the service returned no option");
  const results = [{ type: "walletRpc" as const, data: [`0x${"ab".repeat(65)}`] }];
  return () => confirm(shopOf(bed), id, { optionId: option.id, results });
}

/** Runbooks about the lanes, which send the transactions. */
export const laneCases: readonly RunbookCase[] = [
  {
    runbook: "lane-stuck",
    alert: "LaneStuck",
    what: "the endpoint accepts transactions and drops them, while blocks go on",
    withinMs: 240_000,
    shows: /"nonce":.*"broadcast_at":"20/,
    async inject(bed) {
      const stopMining = keepMining(bed);
      bed.evm.setFaultMode("drops accepted transactions");
      const { id } = await beginOnEvm(bed);
      return {
        end: async () => bed.evm.setFaultMode(undefined),
        result: () => waitForSuccess(bed, id),
        cleanUp: stopMining,
      };
    },
  },
  {
    runbook: "lane-at-fee-ceiling",
    alert: "LaneAtFeeCeiling",
    what: "the base fee is 300 gwei, above the ceiling of 200",
    async inject(bed) {
      await mineAt(bed, 300n * GWEI);
      const { id } = await beginOnEvm(bed);
      return { end: () => mineAt(bed, GWEI), result: () => waitForSuccess(bed, id) };
    },
  },
  {
    runbook: "gas-without-transfer",
    alert: "GasWithoutTransfer",
    what: "two wallets accept their signatures in each simulation and burn the gas of each transaction",
    withinMs: 240_000,
    shows: /"code_hash":"/,
    async inject(bed) {
      const { chain } = bed.stack;
      const burners: GasBurner[] = [];
      for (const salt of [1n, 2n]) burners.push(await deployBlockBurner(chain, { amount: 100_000_000n, salt }));
      const confirms = await Promise.all(burners.map(({ address }) => prepareAsWallet(bed, address)));
      const arm = () => armBurners(chain, burners).catch(() => undefined);
      await arm();
      await Promise.all(confirms.map((confirmOne) => confirmOne()));
      const timer = setInterval(arm, 300);
      return { end: async () => clearInterval(timer) };
    },
  },
  {
    runbook: "lane-gas-low",
    alert: "LaneGasNearlyOut",
    what: "the lanes hold one wei",
    async inject({ stack }) {
      const { client, keys } = stack.chain;
      const fund = (value: bigint) =>
        Promise.all(keys.lanes.map(({ address }) => client.setBalance({ address, value })));
      await fund(1n);
      return { end: () => fund(10n ** 20n) };
    },
  },
];
