import { formatEther, formatGwei } from "viem";
import { readBlock } from "../../../chains/evm/blocks.ts";
import { readGasBalance, readGasPrice } from "../../../chains/evm/evm-broadcast.ts";
import { validateFeeModel } from "../../../chains/evm/fee-model.ts";
import { lowerCaseHex } from "../../../chains/evm/hex.ts";
import type { EvmChain } from "../../../chains/evm/open-evm-chain.ts";
import { readRollupFee } from "../../../chains/evm/rollup-fees.ts";
import { singleTransferGas } from "../../../transfers/evm/lane-signers.ts";
import { BASE_GAS } from "../../../transfers/evm/multicall-batch.ts";
import { type Price, priceTransaction } from "../../../transfers/evm/price-transaction.ts";
import { samplePayment } from "../../../transfers/evm/rollup-charge.ts";
import { failure, type Outcome, ok, warning } from "../finding.ts";
import type { Check } from "../run-checks.ts";

/**
 * Gas of a payment and its payout, each in a transaction of its own: twice the 85,712 that `npm run bench` measures for one
 * relay. In the batches of a busy chain both together take about a quarter.
 */
const GAS_PER_PAYMENT = 172_000n;
/** A lane with gas for fewer payments gets a warning. */
const FEW_PAYMENTS = 100n;

/** Checks the fee model, the fee ceiling against the chain's current charges, and each lane's gas. */
export function laneChecks(chain: EvmChain): Check[] {
  const { rpc, network } = chain;
  return [
    {
      name: "gas",
      async run() {
        const wrongModel = await validateFeeModel(chain);
        if (wrongModel !== undefined) return [failure("fee model", wrongModel, "Correct feeModel.")];
        const { feeModel, fees: policy } = network;
        const quoted = feeModel === "legacy" ? await readGasPrice(rpc) : (await readBlock(rpc, "latest")).baseFee;
        const current = quoted + policy.priorityFeePerGas;
        const sample = samplePayment(chain);
        const { wei: charge } = await readRollupFee(chain, sample);
        const price = await priceTransaction(chain, sample, quoted);
        const lanes = network.lanes.map(async ({ address }, index) => {
          const lane = lowerCaseHex(address);
          const balance = await readGasBalance(rpc, lane);
          const least = singleTransferGas(chain, lane) * (price?.fees.maxFeePerGas ?? policy.maxFeePerGas) + charge;
          const perPayment = GAS_PER_PAYMENT * current + 2n * charge;
          return describeLane({ name: `lane ${index} gas`, address, balance, least, perPayment });
        });
        const fees = { price, current, charge, perGas: charge / sample.gas, ceiling: policy.maxFeePerGas };
        return [describeFees(fees), describeTransactionFee(network, current), ...(await Promise.all(lanes))];
      },
    },
  ];
}

function describeFees({
  price,
  current,
  charge,
  perGas,
  ceiling,
}: {
  price: Price | undefined;
  current: bigint;
  charge: bigint;
  perGas: bigint;
  ceiling: bigint;
}): Outcome {
  const name = "fee ceiling";
  const data = charge > 0n ? `, a payment's data ${formatEther(charge)} (${formatGwei(perGas)} gwei per gas)` : "";
  const detail = `gas costs ${formatGwei(current)} gwei${data}, the ceiling is ${formatGwei(ceiling)} gwei`;
  return price
    ? ok(name, detail)
    : failure(name, detail, "Raise fees.maxFeePerGas, or nothing is sent until gas is cheaper.");
}

/**
 * Returns an error when the largest transfer alone offers more than one transaction may: it waits until gas is cheaper. Returns a
 * warning when full batches at the fee ceiling would; smaller ones are sent then.
 * @param current wei per gas
 */
function describeTransactionFee({ batchGas, walletGas, assets, fees }: EvmChain["network"], current: bigint): Outcome {
  const name = "transaction fee";
  const [gas, most] = [BigInt(batchGas), fees.maxTransactionFee];
  const largest = BASE_GAS + BigInt(Math.max(walletGas, ...assets.map(({ transferGas }) => transferGas)));
  if (largest * current > most)
    return failure(
      name,
      `the largest transfer needs ${formatEther(largest * current)} of the native coin now, a transaction offers at most ${formatEther(most)}`,
      "Raise fees.maxTransactionFee to what every endpoint takes (txfeecap), or such transfers wait until gas is cheaper.",
    );
  const detail = `a transaction offers at most ${formatEther(most)} of the native coin, a full batch at the ceiling ${formatEther(gas * fees.maxFeePerGas)}`;
  if (gas * fees.maxFeePerGas <= most) return ok(name, detail);
  return warning(
    name,
    `${detail}: batches are smaller from ${formatGwei(most / (2n * gas))} gwei on`,
    "Raise fees.maxTransactionFee if every endpoint takes more (txfeecap), or accept smaller batches.",
  );
}

/** Returns the outcome for a lane by what its balance pays for. All amounts in wei; `least` is what one transaction needs. */
function describeLane(lane: {
  name: string;
  address: string;
  balance: bigint;
  least: bigint;
  perPayment: bigint;
}): Outcome {
  const { name, address, balance, least, perPayment } = lane;
  const payments = balance / perPayment;
  const detail = `${formatEther(balance)} of the native coin: about ${payments} payments at the current fee`;
  const remedy = `Send native coins to ${address}.`;
  if (balance < least) return failure(name, `${detail}; one transaction needs ${formatEther(least)}`, remedy);
  return payments < FEW_PAYMENTS ? warning(name, detail, remedy) : ok(name, detail);
}
