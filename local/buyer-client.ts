import { request } from "undici";
import type { Hex, PrivateKeyAccount } from "viem";
import { z } from "zod";
import { parseTypedData } from "../chains/evm/typed-data.ts";
import type { Caller } from "./seed-account.ts";
import { signAsWallet } from "./solana-buyer.ts";
import type { SolanaKey } from "./solana-client.ts";

/** A merchant of a running service. */
export type Shop = { baseUrl: string; caller: Caller };

const amount = z.object({ unit: z.string(), value: z.string() });
const Status = z.object({
  status: z.enum(["requires_action", "processing", "succeeded", "failed", "expired", "cancelled"]),
  isFinal: z.boolean(),
  pollInMs: z.number().nullish(),
  failureCode: z.string().nullish(),
  info: z.object({ txId: z.string(), optionAmount: amount }).nullish(),
});
const WalletAction = z.object({
  type: z.literal("walletRpc"),
  data: z.object({ chain_id: z.string(), method: z.string(), params: z.array(z.unknown()) }),
});
const hex = z.templateLiteral(["0x", z.string()]);
const BuildAction = z.object({ type: z.literal("build"), data: z.object({ data: z.string() }) });
const Action = z.discriminatedUnion("type", [WalletAction, BuildAction]);
const Options = z.object({
  options: z.array(z.looseObject({ id: z.string(), amount, actions: z.array(Action) })),
});

export type PaymentStatus = z.infer<typeof Status>;
export type PayOption = z.infer<typeof Options>["options"][number];
/** A wallet on EVM. With `sendCall`, which returns the hash, it also sends transactions. */
export type EvmBuyer = Pick<PrivateKeyAccount, "address" | "signTypedData"> & {
  sendCall?: (call: { to: Hex; data: Hex }) => Promise<Hex>;
};
/** The buyer's wallet; the namespace of its account decides what it can sign. */
export type Buyer = EvmBuyer | SolanaKey;

/** Creates a payment as the merchant, with the amount in cents. Returns the payment's id. */
export async function createPayment(
  shop: Shop,
  request: { referenceId: string; cents: string; expiresAt?: Date },
): Promise<string> {
  const { referenceId, cents, expiresAt } = request;
  // Unix time in seconds, as WalletConnect Pay expects it.
  const deadline = expiresAt === undefined ? {} : { expiresAt: Math.ceil(expiresAt.getTime() / 1_000) };
  const body = { referenceId, amount: { unit: "iso4217/USD", value: cents }, ...deadline };
  const answer = await ask(shop, "POST", "/v1/payments", body);
  return z.looseObject({ id: z.string() }).parse(answer).id;
}

/** Requests the options of these accounts (CAIP-10) as the wallet. */
export async function listOptions(shop: Shop, paymentId: string, accounts: string[]): Promise<PayOption[]> {
  return Options.parse(await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/options`, { accounts })).options;
}

/** Executes the actions of an option as the wallet, in order. Fetches build actions first. */
export async function signOption(
  shop: Shop,
  paymentId: string,
  option: PayOption,
  buyer: Buyer,
): Promise<WalletResult[]> {
  const results: WalletResult[] = [];
  for (const action of option.actions) {
    const ready = action.type === "build" ? await fetchActions(shop, paymentId, option.id, action.data.data) : [action];
    for (const { data } of ready) results.push({ type: "walletRpc", data: [await execute(data, buyer)] });
  }
  return results;
}

async function fetchActions(shop: Shop, paymentId: string, optionId: string, data: string) {
  const answer = await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/fetch`, { optionId, data });
  return z.object({ actions: z.array(WalletAction) }).parse(answer).actions;
}

/** Signs typed data and Solana transactions, and sends transactions when the wallet can. */
async function execute({ method, params }: z.infer<typeof WalletAction>["data"], buyer: Buyer): Promise<string> {
  if (method === "eth_signTypedData_v4" && "signTypedData" in buyer)
    return await buyer.signTypedData(parseTypedData(z.string().parse(params[1])));
  if (method === "eth_sendTransaction" && "sendCall" in buyer && buyer.sendCall !== undefined) {
    return await buyer.sendCall(z.object({ to: hex, data: hex }).parse(params[0]));
  }
  if (method === "solana_signTransaction" && "secretKey" in buyer)
    return signAsWallet(z.object({ transaction: z.string() }).parse(params[0]).transaction, buyer);
  throw new Error(`this wallet does not support ${method}`);
}

export type WalletResult = { type: "walletRpc"; data: string[] };

/** Confirms a payment as the wallet. The returned status may be final already. */
export async function confirm(
  shop: Shop,
  paymentId: string,
  body: { optionId: string; results: WalletResult[] },
): Promise<PaymentStatus> {
  return Status.parse(await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/confirm`, body));
}

/** Returns the status of a payment. The service holds the response until the status changes, for at most `maxPollMs`. */
export async function getStatus(shop: Shop, paymentId: string, maxPollMs = 0): Promise<PaymentStatus> {
  return Status.parse(await ask(shop, "GET", `/v1/gateway/payment/${paymentId}/status?maxPollMs=${maxPollMs}`));
}

/** Long-polls until the payment is final. */
export async function waitFinal(shop: Shop, paymentId: string, withinMs: number): Promise<PaymentStatus> {
  const until = Date.now() + withinMs;
  for (;;) {
    const left = until - Date.now();
    const status = await getStatus(shop, paymentId, Math.max(0, Math.min(left, 10_000)));
    if (status.isFinal) return status;
    if (left <= 0) throw new Error(`the payment is still ${status.status} after ${withinMs / 1_000} s`);
  }
}

/** Pays as a buyer: requests the options, signs and confirms. Returns the status that the confirm returned. */
export async function pay(shop: Shop, paymentId: string, buyer: Buyer, chain: string): Promise<PaymentStatus> {
  const [option] = await listOptions(shop, paymentId, [`${chain}:${buyer.address}`]);
  if (option === undefined) throw new Error("the service returned no option");
  return await confirm(shop, paymentId, {
    optionId: option.id,
    results: await signOption(shop, paymentId, option, buyer),
  });
}

/** Cancels a payment as the wallet. */
export async function cancel(shop: Shop, paymentId: string): Promise<void> {
  await ask(shop, "POST", `/v1/gateway/payment/${paymentId}/cancel`);
}

type Answer = { status: number; body: unknown };
/** The service returned an error status. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  /** What the response asks for before the request is repeated, seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, status: number, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

let onAnswer: ((method: string, path: string, answer: Answer) => void) | undefined;

/** Calls a function for every response that this client receives; for tests. */
export function watchAnswers(listener: (method: string, path: string, answer: Answer) => void): void {
  onAnswer = listener;
}

/** Sends and receives JSON. Throws Refused with the service's message for an error status. */
export async function ask(
  { baseUrl, caller }: Shop,
  method: string,
  path: string,
  body?: unknown,
  more: Record<string, string> = {},
): Promise<unknown> {
  const own = { "api-key": caller.apiKey, "merchant-id": caller.merchantId, "content-type": "application/json" };
  const headers = { ...own, ...more };
  const sent = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const signal = AbortSignal.timeout(40_000);
  const { statusCode: status, headers: got, body: received } = await request(`${baseUrl}${path}`, { ...sent, signal });
  const text = await received.text();
  onAnswer?.(method, path, { status, body: JSON.parse(text) });
  if (status < 300) return JSON.parse(text);
  throw new Refused(
    `${method} ${path.split("?", 1)[0]} answered ${status}: ${text}`,
    status,
    readSeconds(got["retry-after"]),
  );
}

function readSeconds(header: string | string[] | undefined): number | undefined {
  return typeof header === "string" && /^\d+$/.test(header) ? Number(header) : undefined;
}
