import { type Hex, hexToNumber, numberToHex } from "viem";

/** The accounts that send transactions, and where their chain is. */
type Senders = { rpcUrl: string; relayers: readonly string[] };

/** Returns the gas and transactions of these senders between two heights, read from the chain itself. */
export async function readGas(
  { rpcUrl, relayers: addresses }: Senders,
  from: number,
  to: number,
): Promise<{ gas: number; transactions: number }> {
  const relayers = new Set(addresses.map((address) => address.toLowerCase()));
  let gas = 0;
  let transactions = 0;
  for (let number = from + 1; number <= to; number += 1) {
    const receipts = (await ask(rpcUrl, "eth_getBlockReceipts", [numberToHex(number)])) as {
      from: string;
      gasUsed: Hex;
    }[];
    for (const receipt of receipts) {
      if (!relayers.has(receipt.from.toLowerCase())) continue;
      gas += hexToNumber(receipt.gasUsed);
      transactions += 1;
    }
  }
  return { gas, transactions };
}

/** Returns the height of the chain. */
export async function readHeight({ rpcUrl }: Pick<Senders, "rpcUrl">): Promise<number> {
  return hexToNumber((await ask(rpcUrl, "eth_blockNumber", [])) as Hex);
}

async function ask(url: string, method: string, params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return ((await response.json()) as { result: unknown }).result;
}
