import {
  encodeFunctionData,
  type Hex,
  maxUint256,
  parseAbi,
  TransactionExecutionError,
  UserRejectedRequestError,
} from "viem";
import { describe, expect, test } from "vitest";
import { permitTransferJson } from "../../../chains/evm/collector-contract.ts";
import { permitJson } from "../../../chains/evm/eip2612.ts";
import { typedDataJson } from "../../../chains/evm/eip3009.ts";
import { UnknownSendError, UnsafeActionError, type WalletRpc } from "../../../client/index.ts";
import { evmSigner } from "../../../client/viem.ts";

const address = (byte: string): Hex => `0x${byte.repeat(20)}`;
const [payer, token, collector, other] = [address("a1"), address("b2"), address("c3"), address("99")];
const permit2 = "0x000000000022D473030F116dDEE9F6B43aC78BA3";
const chain = "eip155:8453";
const domain = { name: "USD Coin", version: "2", chainId: 8453, verifyingContract: token };
const nonce: Hex = `0x${"01".repeat(32)}`;
const abi = parseAbi(["function approve(address,uint256)", "function transfer(address,uint256)"]);

const amount = (value: string) => ({
  unit: `caip19/${chain}/erc20:${token}`,
  value,
  display: { assetSymbol: "", assetName: "", decimals: 6 },
});
const option = {
  id: "opt",
  optionId: "opt",
  account: `${chain}:${payer}`,
  amount: amount("12500000"),
  etaS: 1,
  expiresAt: null,
  actions: [],
  collectData: null,
};

const sign = (json: string, by = payer): WalletRpc => ({
  chain_id: chain,
  method: "eth_signTypedData_v4",
  params: [by, json],
});
const send = (functionName: "approve" | "transfer", args: readonly [Hex, bigint], more: object = {}): WalletRpc => {
  const call = {
    from: payer,
    to: token,
    data: encodeFunctionData({ abi, functionName, args }),
    value: "0x0",
    chainId: "0x2105",
  };
  return { chain_id: chain, method: "eth_sendTransaction", params: [{ ...call, ...more }] };
};
const authorization = (more: object = {}) =>
  sign(typedDataJson(domain, { token, from: payer, to: other, value: 12_500_000n, validBefore: 9, nonce, ...more }));
const transferPermit = (more: object = {}, at = permit2 as Hex) =>
  sign(
    permitTransferJson(
      { chainId: 8453, permit2: at, collector },
      { token, amount: 12_500_000n, nonce, deadline: 9, ...more },
    ),
  );
const permit = (more: object = {}, of: object = {}) =>
  sign(
    permitJson(
      { ...domain, ...of },
      { owner: payer, spender: permit2, value: 12_500_000n, nonce: 0n, deadline: 9, ...more },
    ),
  );
const transfer = (more: object = {}, value = 12_500_000n) => send("transfer", [other, value], more);

/** An approval or a transfer of the option's amount, with altered call data. */
const withData = (name: "approve" | "transfer", account: Hex, alter: (data: Hex) => Hex, value = 12_500_000n) =>
  send(name, [account, value], {
    data: alter(encodeFunctionData({ abi, functionName: name, args: [account, value] })),
  });
const setFirstByte = (data: Hex): Hex => `0x${data.slice(2, 10)}01${data.slice(12)}`;
const cutAmount = withData("transfer", other, (data) => data.slice(0, -2) as Hex, 12_500_000n * 256n);
const renamed = ({ params, ...rest }: WalletRpc, from: string, to: string): WalletRpc => ({
  ...rest,
  params: [params[0], String(params[1]).replaceAll(`"${from}"`, `"${to}"`)],
});

/** Gives actions to a wallet. Returns what it did. */
async function execute(actions: readonly WalletRpc[], asked: typeof option = option): Promise<string[]> {
  const done: string[] = [];
  const note = <T>(what: string, result: T): Promise<T> => {
    done.push(what);
    return Promise.resolve(result);
  };
  const wallet = {
    account: { address: payer },
    chain: { id: 8453 },
    signTypedData: ({ primaryType }: { primaryType: string }) => note(primaryType, "0x"),
    sendTransaction: ({ data }: { data: Hex }) => note(data.slice(0, 10), "0x" as const),
    waitForTransactionReceipt: () => note("receipt", { status: "success" }),
  };
  await evmSigner(wallet)
    .execute(actions, asked)
    .catch((error: unknown) => {
      expect(error).toBeInstanceOf(UnsafeActionError);
      expect(done).toEqual([]);
      throw error;
    });
  return done;
}

test("a wallet executes what pays its option, and waits for approvals before it signs", async () => {
  expect(await execute([authorization()])).toEqual(["TransferWithAuthorization"]);
  expect(await execute([permit(), transferPermit()])).toEqual(["Permit", "PermitTransferFrom"]);
  const approvals = [send("approve", [permit2, 0n]), send("approve", [permit2, 12_500_000n])];
  const steps = ["0x095ea7b3", "receipt", "0x095ea7b3", "receipt", "PermitTransferFrom"];
  expect(await execute([...approvals, transferPermit()])).toEqual(steps);
  expect(await execute([transfer()])).toEqual(["0xa9059cbb"]);
});

describe("a wallet signs and sends nothing when it is asked for", () => {
  test.each<[string, WalletRpc[]]>([
    ["nothing", []],
    ["an authorization of another amount", [authorization({ value: 12_500_001n })]],
    ["an authorization of another account", [authorization({ from: other })]],
    ["a signature of another account", [sign(authorization().params[1] as string, other)]],
    [
      "an authorization of another token",
      [
        sign(
          typedDataJson(
            { ...domain, verifyingContract: other },
            { token, from: payer, to: other, value: 12_500_000n, validBefore: 9, nonce },
          ),
        ),
      ],
    ],
    [
      "a signature for another chain",
      [
        sign(
          typedDataJson(
            { ...domain, chainId: 1 },
            { token, from: payer, to: other, value: 12_500_000n, validBefore: 9, nonce },
          ),
        ),
      ],
    ],
    ["an action of another chain", [{ ...authorization(), chain_id: "eip155:1" }]],
    ["two payments", [authorization(), authorization()]],
    ["a transfer and a payment", [transfer(), authorization()]],
    ["a Permit2 transfer of another amount", [transferPermit({ amount: 12_500_001n })]],
    ["a Permit2 transfer of another token", [transferPermit({ token: other })]],
    ["a signature for a contract that is not Permit2", [transferPermit({}, other)]],
    ["a permit alone", [permit()]],
    ["a permit for another contract", [permit({ spender: other }), transferPermit()]],
    ["a permit without a limit", [permit({ value: maxUint256 }), transferPermit()]],
    ["a permit of another token", [permit({}, { verifyingContract: other }), transferPermit()]],
    ["a permit of another account", [permit({ owner: other }), transferPermit()]],
    ["an approval for another contract", [send("approve", [other, 12_500_000n]), transferPermit()]],
    ["an approval without a limit", [send("approve", [permit2, maxUint256]), transferPermit()]],
    ["an approval of another token", [send("approve", [permit2, 12_500_000n], { to: other }), transferPermit()]],
    ["an approval and no payment", [send("approve", [permit2, 12_500_000n])]],
    ["a transfer of another amount", [transfer({}, 12_500_001n)]],
    ["a transfer of another token", [transfer({ to: other })]],
    ["a transfer from another account", [transfer({ from: other })]],
    ["a transfer on another chain", [transfer({ chainId: "0x1" })]],
    ["a transfer with native coins", [transfer({ value: "0x1" })]],
    ["a call of something else", [transfer({ data: `0x23b872dd${"00".repeat(96)}` })]],
    ["typed data of another kind", [sign(JSON.stringify({ domain, types: {}, primaryType: "Order", message: {} }))]],
    ["an allowance beside a payment that needs none", [permit(), authorization()]],
    ["a transfer before the payment", [send("transfer", [permit2, 12_500_000n]), transferPermit()]],
    ["an approval with more data", [withData("approve", permit2, (data) => `${data}00`), transferPermit()]],
    ["an approval whose address has more bytes", [withData("approve", permit2, setFirstByte), transferPermit()]],
    ["an amount that is cut off, which the chain would fill up with zeros", [cutAmount]],
    ["another kind of permit of Permit2", [renamed(transferPermit(), "PermitTransferFrom", "PermitBatch")]],
    ["another kind of permit of the token", [renamed(permit(), "Permit", "Order"), transferPermit()]],
    ["a transaction that it would only sign", [{ ...transfer(), method: "eth_signTransaction" }]],
    ["typed data that is not readable", [sign("{")]],
    ["parameters that are no list", [{ ...authorization(), params: {} as never }]],
    ["no action", [null as never]],
    ["a signature of plain text", [{ chain_id: chain, method: "personal_sign", params: ["0x00", payer] }]],
  ])("%s", async (_name, actions) => {
    await expect(execute(actions)).rejects.toThrow(UnsafeActionError);
  });
});

test.each([
  ["an amount that is no number", { amount: amount("x") }],
  ["an amount that has decimals", { amount: amount("12.5") }],
  ["no amount", { amount: undefined as never }],
  ["an account that is no text", { account: 7 as never }],
  ["an account that is not on an EVM chain", { account: `solana:mainnet:${payer}` }],
  [
    "a chain that is no number",
    { account: `eip155:base:${payer}`, amount: { ...amount("1"), unit: `caip19/eip155:base/erc20:${token}` } },
  ],
])("a wallet signs nothing for an option with %s", async (_name, more) => {
  await expect(execute([authorization()], { ...option, ...more })).rejects.toThrow(UnsafeActionError);
});

test("a wallet client takes only transactions of its own chain, whichever chains it signs for", () => {
  const wallet = {
    account: { address: payer },
    chain: { id: 8453 },
    signTypedData: async () => "0x",
    sendTransaction: async () => "0x" as const,
  };
  const signer = evmSigner(wallet, { chains: [8453, 1] });
  const canExecute = (data: WalletRpc) => signer.canExecute([{ type: "walletRpc", data }]);
  expect(canExecute(transfer())).toBe(true);
  expect(canExecute({ ...transfer(), chain_id: "eip155:1" })).toBe(false);
  expect(canExecute({ ...authorization(), chain_id: "eip155:1" })).toBe(true);
});

test("an account signs nothing on a chain that it was not opened for", async () => {
  const signed: unknown[] = [];
  const wallet = { address: payer, signTypedData: async (data: unknown) => `0x${signed.push(data)}` };
  const execute = (id: number) => evmSigner(wallet, { chains: [id] }).execute([authorization()], option);
  await expect(execute(1)).rejects.toThrow(UnsafeActionError);
  expect(signed).toEqual([]);
  await execute(8453);
  expect(signed).toHaveLength(1);
});

describe("when the wallet fails while it sends the payment", () => {
  /** Pays with a wallet whose sending fails. Returns the error. */
  const failToSend = (error: unknown, actions: readonly WalletRpc[]) => {
    const wallet = {
      account: { address: payer },
      chain: { id: 8453 },
      signTypedData: async () => "0x",
      sendTransaction: async () => Promise.reject(error),
      waitForTransactionReceipt: async () => ({ status: "success" }),
    };
    return evmSigner(wallet)
      .execute(actions, option)
      .catch((thrown: unknown) => thrown);
  };

  test("the error says that it may be sent, and for which option", async () => {
    const lost = new Error("the answer is lost");
    const error = await failToSend(lost, [transfer()]);
    expect(error).toBeInstanceOf(UnknownSendError);
    expect(error).toMatchObject({ optionId: "opt", cause: lost });
  });

  test("a user who declined has sent nothing, and an approval can be sent again", async () => {
    const declined = new TransactionExecutionError(new UserRejectedRequestError(new Error("no")), {} as never);
    expect(await failToSend(declined, [transfer()])).toBe(declined);
    const lost = new Error("the answer is lost");
    expect(await failToSend(lost, [send("approve", [permit2, 12_500_000n]), transferPermit()])).toBe(lost);
  });
});

test("a wallet does not pay after an approval that was reverted, and sends nothing on another chain", async () => {
  const done: string[] = [];
  const wallet = (chainId: number) => ({
    account: { address: payer },
    chain: { id: chainId },
    signTypedData: async () => Promise.reject(new Error("it signs")),
    sendTransaction: async () => `0x${done.push("sent")}` as const,
    waitForTransactionReceipt: async () => ({ status: "reverted" }),
  });
  const actions = [send("approve", [permit2, 12_500_000n]), transferPermit()];
  await expect(evmSigner(wallet(8453)).execute(actions, option)).rejects.toThrow("the approval 0x1 was reverted");
  const elsewhere = evmSigner(wallet(1), { chains: [8453] });
  await expect(elsewhere.execute([transfer()], option)).rejects.toThrow(UnsafeActionError);
  expect(done).toEqual(["sent"]);
});

test("a wallet signs nothing for an option whose amount is on another chain than its account", async () => {
  const asked = { ...option, amount: { ...option.amount, unit: `caip19/eip155:1/erc20:${token}` } };
  await expect(execute([authorization()], asked)).rejects.toThrow(UnsafeActionError);
});
