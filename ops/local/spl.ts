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

/** Extensions of Token-2022 that a mint may carry. */
export type MintExtensions = {
  /** Kept back by every transfer; `maximum` in the smallest unit. */
  transferFee?: { basisPoints: number; maximum: bigint };
  /** May move and burn anybody's tokens. */
  permanentDelegate?: string;
  /** A program that every transfer calls. */
  transferHook?: string;
  nonTransferable?: boolean;
  /** Where the metadata lies; the mint itself when `"self"`. */
  metadataPointer?: string;
  /** Token accounts are born frozen; `fundTokens` thaws those it funds. */
  defaultFrozen?: boolean;
  pausable?: boolean;
};

export type MintOptions = { decimals?: number; program?: "token" | "token-2022"; extensions?: MintExtensions };

/** A mint; the operator is its mint and freeze authority, and the authority of its extensions. */
export type Mint = { address: string; program: string; decimals: number; isFrozenAtFirst: boolean };

/** Makes a mint, with 6 decimals as USDC has. Extensions need Token-2022, and choose it when no program is named. */
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

/** What each extension needs before the mint is initialized. */
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

/** The token account that belongs to an owner by rule. */
export function tokenAccountOf({ address, program }: Mint, owner: string): string {
  const key = getAssociatedTokenAddressSync(new PublicKey(address), new PublicKey(owner), true, new PublicKey(program));
  return key.toBase58();
}

/** So many owners fit into one transaction. */
const ownersAtOnce = 6;

/** Makes the token account of each owner where it is missing, and mints so much into it (in the smallest unit). */
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

/** What an owner holds of a mint in its own token account, in the smallest unit; 0 without one. */
export async function tokenBalance({ connection }: SolanaClient, mint: Mint, owner: string): Promise<bigint> {
  const account = await connection.getAccountInfo(new PublicKey(tokenAccountOf(mint, owner)));
  return account === null ? 0n : account.data.readBigUInt64LE(64);
}
