import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import type * as Viem from "viem";
import type * as Accounts from "viem/accounts";

/**
 * The facilitator of x402's documentation, without its log lines: "exact" payments with EIP-3009, settled by `POST /settle`.
 * Its packages come from the folder in which the bench installed them. `GET /rpc-calls` returns the RPC calls so far.
 */

export type FacilitatorOptions = {
  /** Where the packages are installed. */
  folder: string;
  rpcUrl: string;
  chainId: number;
  privateKey: Viem.Hex;
  /** Hands out nonces with viem's nonceManager instead of asking the node for each. */
  hasNonceManager: boolean;
  /** How often viem polls for a receipt that is not there yet, milliseconds; viem's own default when undefined. */
  pollMs?: number;
};

type Facilitator = { settle(payload: unknown, requirements: unknown): Promise<unknown> };
type Core = { x402Facilitator: new () => Facilitator };
type Evm = { toFacilitatorEvmSigner(client: Record<string, unknown>): unknown };
type Exact = {
  registerExactEvmScheme(facilitator: Facilitator, config: { signer: unknown; networks: string }): unknown;
};
type Handler = (request: { body: Record<string, unknown> }, response: { json(body: unknown): void }) => void;
type Express = {
  (): Parameters<typeof createServer>[1] & {
    use(middleware: unknown): void;
    post(path: string, handler: Handler): void;
    get(path: string, handler: Handler): void;
  };
  json(): unknown;
};

const options: FacilitatorOptions = JSON.parse(process.argv[2] ?? "");
const load = createRequire(join(options.folder, "package.json"));
const viem: typeof Viem = load("viem");
const { nonceManager, privateKeyToAccount }: typeof Accounts = load("viem/accounts");
const { x402Facilitator }: Core = load("@x402/core/facilitator");
const { toFacilitatorEvmSigner }: Evm = load("@x402/evm");
const { registerExactEvmScheme }: Exact = load("@x402/evm/exact/facilitator");
const express: Express = load("express");

let rpcCalls = 0;
const count = () => {
  rpcCalls += 1;
};
const network = `eip155:${options.chainId}`;
const account = privateKeyToAccount(options.privateKey, options.hasNonceManager ? { nonceManager } : {});
const client = viem
  .createWalletClient({
    account,
    chain: viem.defineChain({
      id: options.chainId,
      name: "Local",
      nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
      rpcUrls: { default: { http: [options.rpcUrl] } },
    }),
    transport: viem.http(options.rpcUrl, { onFetchRequest: count }),
    ...(options.pollMs === undefined ? {} : { pollingInterval: options.pollMs }),
  })
  .extend(viem.publicActions);
const { getCode, readContract, verifyTypedData, writeContract, sendTransaction, waitForTransactionReceipt } = client;
const { address } = account;
const reads = { address, getCode, readContract, verifyTypedData };
const signer = toFacilitatorEvmSigner({ ...reads, writeContract, sendTransaction, waitForTransactionReceipt });
const facilitator = new x402Facilitator();
registerExactEvmScheme(facilitator, { signer, networks: network });

const app = express();
app.use(express.json());
app.post("/settle", ({ body }, response) => {
  facilitator.settle(body["paymentPayload"], body["paymentRequirements"]).then(
    (settled) => response.json(settled),
    (error: unknown) => response.json({ success: false, errorReason: error instanceof Error ? error.message : "" }),
  );
});
app.get("/rpc-calls", (_, response) => response.json({ rpcCalls }));
const server = createServer(app).listen(0, "127.0.0.1", () => {
  const bound = server.address();
  console.log(`http://127.0.0.1:${typeof bound === "object" ? bound?.port : ""}`);
});
