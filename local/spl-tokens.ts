import {
  AccountState,
  createAssociatedTokenAccountIdempotentInstruction,
  createInitializeDefaultAccountStateInstruction,
  createInitializeMetadataPointerInstruction,
  createInitializeMint2Instruction,
  createInitializeNonTransferableMintInstruction,
  createInitializePausableConfigInstruction,
  createInitializePermanentDelegateInstruction,
  createInitializeTransferFeeConfigInstruction,
  createInitializeTransferHookInstruction,
  createMintToInstruction,
  createThawAccountInstruction,
  ExtensionType,
  getAssociatedTokenAddressSync,
  getMintLen,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
} from "@solana/spl-token";
import { Keypair, PublicKey, SystemProgram, type TransactionInstruction } from "@solana/web3.js";
import { chunk, type SolanaClient, sendAll, type Work } from "./solana-client.ts";

/** Extensions of Token-2022 that a mint may have. */
export type MintExtensions = {
  /** Fee that every transfer withholds; `maximum` in the smallest unit. */
  transferFee?: { basisPoints: number; maximum: bigint };
  /** An account that may move and burn the tokens of every holder. */
  permanentDelegate?: string;
  /** A program that every transfer calls. */
  transferHook?: string;
  nonTransferable?: boolean;
  /** The account of the metadata; the mint itself when `"self"`. */
  metadataPointer?: string;
  /** New token accounts are frozen; `fundTokens` thaws those that it funds. */
  defaultFrozen?: boolean;
  pausable?: boolean;
};

export type MintOptions = { decimals?: number; program?: "token" | "token-2022"; extensions?: MintExtensions };

/** A mint. The operator is its mint and freeze authority, and the authority of its extensions. */
export type Mint = { address: string; program: string; decimals: number; isFrozenAtFirst: boolean };

/** Creates a mint, by default with the 6 decimals of USDC. Extensions require Token-2022, which they select by default. */
export async function makeMint(
  client: SolanaClient,
  { decimals = 6, extensions = {}, program: name }: MintOptions = {},
): Promise<Mint> {
  const program = (name ?? (Object.keys(extensions).length === 0 ? "token" : "token-2022")) === "token" ? old : new2022;
  const mint = Keypair.generate();
  const us = client.operator.publicKey;
  const parts = extensionParts(mint.publicKey, us, extensions);
  const space = getMintLen(parts.map(({ type }) => type));
  const lamports = await client.connection.getMinimumBalanceForRentExemption(space);
  const create = { fromPubkey: us, newAccountPubkey: mint.publicKey, space, lamports, programId: program };
  const instructions = [
    SystemProgram.createAccount(create),
    ...parts.map(({ instruction }) => instruction),
    createInitializeMint2Instruction(mint.publicKey, decimals, us, us, program),
  ];
  await sendAll(client, [{ instructions, signers: [mint] }]);
  const isFrozenAtFirst = extensions.defaultFrozen === true;
  return { address: mint.publicKey.toBase58(), program: program.toBase58(), decimals, isFrozenAtFirst };
}

const old = TOKEN_PROGRAM_ID;
const new2022 = TOKEN_2022_PROGRAM_ID;

type Part = { type: ExtensionType; instruction: TransactionInstruction };

/** Returns the instructions that extensions need before the mint is initialized. */
function extensionParts(mint: PublicKey, us: PublicKey, wanted: MintExtensions): Part[] {
  const parts: Part[] = [];
  const add = (type: ExtensionType, instruction: TransactionInstruction) => parts.push({ type, instruction });
  const { transferFee, permanentDelegate, transferHook, metadataPointer } = wanted;
  if (transferFee !== undefined) {
    const { basisPoints, maximum } = transferFee;
    const fee = createInitializeTransferFeeConfigInstruction(mint, us, us, basisPoints, maximum, new2022);
    add(ExtensionType.TransferFeeConfig, fee);
  }
  if (permanentDelegate !== undefined) {
    const delegate = new PublicKey(permanentDelegate);
    add(ExtensionType.PermanentDelegate, createInitializePermanentDelegateInstruction(mint, delegate, new2022));
  }
  if (transferHook !== undefined) {
    const hook = createInitializeTransferHookInstruction(mint, us, new PublicKey(transferHook), new2022);
    add(ExtensionType.TransferHook, hook);
  }
  if (wanted.nonTransferable === true)
    add(ExtensionType.NonTransferable, createInitializeNonTransferableMintInstruction(mint, new2022));
  if (metadataPointer !== undefined) {
    const at = metadataPointer === "self" ? mint : new PublicKey(metadataPointer);
    add(ExtensionType.MetadataPointer, createInitializeMetadataPointerInstruction(mint, us, at, new2022));
  }
  if (wanted.defaultFrozen === true) {
    const frozen = createInitializeDefaultAccountStateInstruction(mint, AccountState.Frozen, new2022);
    add(ExtensionType.DefaultAccountState, frozen);
  }
  if (wanted.pausable === true)
    add(ExtensionType.PausableConfig, createInitializePausableConfigInstruction(mint, us, new2022));
  return parts;
}

/** Returns the associated token account of an owner. */
export function tokenAccountOf({ address, program }: Mint, owner: string): string {
  const key = getAssociatedTokenAddressSync(new PublicKey(address), new PublicKey(owner), true, new PublicKey(program));
  return key.toBase58();
}

/** Owners that fit into one transaction. */
const ownersAtOnce = 6;

/** Creates the missing token account of each owner, and mints an amount (in the smallest unit) into it. */
export async function fundTokens(
  client: SolanaClient,
  mint: Mint,
  owners: readonly string[],
  amount: bigint,
): Promise<void> {
  const us = client.operator.publicKey;
  const [address, program] = [new PublicKey(mint.address), new PublicKey(mint.program)];
  const work: Work[] = chunk(owners, ownersAtOnce).map((some) => ({
    instructions: some.flatMap((owner) => {
      const account = new PublicKey(tokenAccountOf(mint, owner));
      const holder = new PublicKey(owner);
      const thaw = mint.isFrozenAtFirst ? [createThawAccountInstruction(account, address, us, [], program)] : [];
      const give = amount === 0n ? [] : [createMintToInstruction(address, account, us, amount, [], program)];
      return [
        createAssociatedTokenAccountIdempotentInstruction(us, account, holder, address, program),
        ...thaw,
        ...give,
      ];
    }),
  }));
  await sendAll(client, work);
}

/** Returns the balance of the associated token account of an owner, in the smallest unit; 0 when it does not exist. */
export async function tokenBalance({ connection }: SolanaClient, mint: Mint, owner: string): Promise<bigint> {
  const account = await connection.getAccountInfo(new PublicKey(tokenAccountOf(mint, owner)));
  // An account that has not been created can have lamports.
  return account === null || account.data.length === 0 ? 0n : account.data.readBigUInt64LE(64);
}
