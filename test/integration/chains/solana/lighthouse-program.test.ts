import { readFileSync } from "node:fs";
import { AccountLayout, MintLayout, TOKEN_PROGRAM_ID } from "@solana/spl-token";
import { PublicKey, SystemProgram, TransactionInstruction } from "@solana/web3.js";
import { Account, LiteSvm } from "litesvm/dist/internal.js";
import { describe, expect, test } from "vitest";
import {
  buildTransaction,
  buildTransfer,
  computeBudgetInstructions,
  findTokenAccount,
} from "../../../../chains/solana/build-payment.ts";
import { LIGHTHOUSE_PROGRAM, validateGuards } from "../../../../chains/solana/lighthouse-guards.ts";
import { parseTransaction, withSignature } from "../../../../chains/solana/wire-format.ts";
import * as forms from "../../../unit/chains/solana/guard-forms.ts";
import {
  buyer,
  makeAddress,
  makeTransfer,
  mint,
  relayer,
  treasury,
} from "../../../unit/chains/solana/solana-fixtures.ts";

/**
 * A dump of the program as it is deployed: `solana program dump <program id> lighthouse.so`. No npm package has it, and the
 * test runs only where LIGHTHOUSE_PROGRAM names the file; see docs/decisions/wallet-guards.md.
 */
const file = process.env["LIGHTHOUSE_PROGRAM"];

const key = (address: string) => new PublicKey(address);
const source = findTokenAccount(buyer.address, mint, "token");
const receiver = findTokenAccount(treasury, mint, "token");
const transfer = makeTransfer();
const FUNDS = 1_000_000_000n;
/** Two signatures, and 200,000 units at 10,000 micro-lamports. */
const budget = { units: 200_000, unitPrice: 10_000n };
const FEE = 2n * 5_000n + 2_000n;

function openRuntime() {
  const svm = new LiteSvm();
  svm.setBlockhashCheck(false);
  svm.addProgram(key(LIGHTHOUSE_PROGRAM).toBytes(), readFileSync(file ?? ""));
  const store = (address: string, data: Uint8Array) =>
    svm.setAccount(key(address).toBytes(), new Account(10_000_000n, data, TOKEN_PROGRAM_ID.toBytes(), false, 0n));
  const minted = Buffer.alloc(MintLayout.span);
  const noMinter = { mintAuthorityOption: 0 as const, mintAuthority: PublicKey.default };
  const unfrozen = { freezeAuthorityOption: 0 as const, freezeAuthority: PublicKey.default };
  MintLayout.encode({ ...noMinter, ...unfrozen, supply: 10n ** 12n, decimals: 6, isInitialized: true }, minted);
  store(mint, minted);
  for (const [address, owner, amount] of [
    [source, buyer.address, 20_000_000n],
    [receiver, treasury, 0n],
  ] as const) {
    const data = Buffer.alloc(AccountLayout.span);
    const none = { delegateOption: 0 as const, delegate: PublicKey.default, delegatedAmount: 0n };
    const open = { closeAuthorityOption: 0 as const, closeAuthority: PublicKey.default };
    const native = { isNativeOption: 0 as const, isNative: 0n };
    AccountLayout.encode({ mint: key(mint), owner: key(owner), amount, state: 1, ...none, ...open, ...native }, data);
    store(address, data);
  }
  svm.airdrop(key(relayer.address).toBytes(), FUNDS);
  return svm;
}

const guard = (data: number[], ...accounts: string[]) =>
  new TransactionInstruction({
    programId: key(LIGHTHOUSE_PROGRAM),
    keys: accounts.map((one) => ({ pubkey: key(one), isSigner: false, isWritable: false })),
    data: Buffer.from(data),
  });

function run(svm: LiteSvm, before: TransactionInstruction[], after: TransactionInstruction[] = []) {
  const all = [...computeBudgetInstructions(budget), ...before, ...buildTransfer(transfer), ...after];
  const parsed = parseTransaction(buildTransaction(relayer.address, all, makeAddress()));
  if ("error" in parsed) throw new Error(parsed.error);
  const bytes = withSignature(parsed, buyer.address, buyer.sign(parsed.message));
  const once = parseTransaction(bytes);
  if ("error" in once) throw new Error(once.error);
  const answer = svm.sendVersionedTransaction(withSignature(once, relayer.address, relayer.sign(once.message)));
  const failed = "err" in answer;
  const arrived = AccountLayout.decode(svm.getAccount(key(receiver).toBytes())?.data() ?? new Uint8Array()).amount;
  const paid = FUNDS - (svm.getBalance(key(relayer.address).toBytes()) ?? 0n);
  return { failed, logs: (failed ? answer.meta() : answer).logs().join("\n"), arrived, paid };
}

describe("the published Lighthouse program", () => {
  const facts = [
    guard(forms.assertTokenMulti(forms.amount(20_000_000n), forms.noDelegate, forms.isAssociated), source),
    guard(forms.assertInfoMulti(forms.lamports(1n), forms.knownOwner(1), forms.dataLength(165n)), source),
    guard(forms.assertInfoMulti(forms.lamports(FUNDS - FEE), forms.knownOwner(0)), relayer.address),
  ];
  const afterwards = guard(
    forms.assertTokenMulti(forms.amount(7_500_000n, forms.EQUAL), forms.delegatedAmount(0n), forms.noDelegate),
    source,
  );

  test("the published Lighthouse program takes nothing but the fee from a fee payer whose lamports a guard reads", () => {
    expect(run(openRuntime(), facts, [afterwards])).toMatchObject({ failed: false, arrived: 12_500_000n, paid: FEE });
  });

  test("the published Lighthouse program fails a payment whose fee payer has paid for another one since, at the cost of one fee", () => {
    const svm = openRuntime();
    const owner = key(relayer.address).toBytes();
    svm.setAccount(owner, new Account(FUNDS - 1n, new Uint8Array(), SystemProgram.programId.toBytes(), false, 0n));
    const outcome = run(svm, facts, [afterwards]);
    expect(outcome).toMatchObject({ failed: true, arrived: 0n, paid: FEE + 1n });
    expect(outcome.logs).toContain(`Program ${LIGHTHOUSE_PROGRAM} failed`);
  });

  test.each<[string, number[], string[]]>([
    ["a value in the data", forms.assertData(64, forms.u64At(64, 20_000_000n).slice(1)), [source]],
    ["several values", forms.assertDataMulti(forms.u64At(64, 20_000_000n), forms.u64At(121, 0n)), [source]],
    ["two accounts", forms.assertDelta(64, 64, -20_000_000n), [source, receiver]],
    ["exact lamports of the fee payer", forms.assertInfo(forms.lamports(FUNDS - FEE, forms.EQUAL)), [relayer.address]],
    ["an owner", forms.assertInfo(forms.owner(TOKEN_PROGRAM_ID.toBytes())), [source]],
    ["that the payer signs", forms.assertInfo([5, 1, forms.EQUAL]), [buyer.address]],
    ["a fact, logged when it differs", forms.assertInfo(forms.knownOwner(1), 4), [source]],
    ["a fact, logged in words", forms.assertInfo(forms.knownOwner(1), 1), [source]],
    ["a mint", forms.assertMint(6), [mint]],
    ["a mint several times", forms.assertMintMulti(6, 6), [mint]],
    ["a token account's mint", forms.assertToken(forms.mintedBy(key(mint).toBytes())), [source]],
    ["a token account's owner", forms.assertToken(forms.ownedBy(key(buyer.address).toBytes())), [source]],
    ["a state", forms.assertTokenMulti(forms.initialized, forms.notNative, forms.noCloseAuthority), [source]],
  ])("the published Lighthouse program understands a guard on %s, as our parser does", (_, data, accounts) => {
    const program = LIGHTHOUSE_PROGRAM;
    expect(validateGuards([{ number: 1, program, accounts, data: Uint8Array.from(data) }], relayer.address)).toEqual(
      [],
    );
    const outcome = run(openRuntime(), [guard(data, ...accounts)]);
    expect(outcome).toMatchObject({ failed: false, arrived: 12_500_000n, paid: FEE });
  });
});
