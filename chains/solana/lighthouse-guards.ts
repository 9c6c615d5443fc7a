import type { PlainInstruction } from "./wallet-instructions.ts";

/** The program whose assertions wallets add to the transactions that they sign. */
export const LIGHTHOUSE_PROGRAM = "L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95";

/** Maximum number of guards that a known wallet adds; see docs/decisions/wallet-guards.md. */
const MOST_GUARDS = 4;

/** Reads one field at a position. Returns the position after it, or undefined if the bytes do not have its form. */
type Field = (data: Uint8Array, at: number) => number | undefined;

/** The layouts follow Lighthouse's source, programs/lighthouse/src/instruction.rs and types/assert (Borsh). */
const bytes =
  (count: number): Field =>
  (data, at) =>
    at + count <= data.length ? at + count : undefined;

/** A byte below a limit: an enum without fields, or a boolean. */
const below =
  (limit: number): Field =>
  (data, at) =>
    (data[at] ?? limit) < limit ? at + 1 : undefined;

const all =
  (...fields: readonly Field[]): Field =>
  (data, at) =>
    fields.reduce<number | undefined>((next, field) => (next === undefined ? next : field(data, next)), at);

/** An enum: a byte that selects the form of what follows. */
const oneOf =
  (...forms: readonly Field[]): Field =>
  (data, at) =>
    forms[data[at] ?? forms.length]?.(data, at + 1);

/** A count below 128 and as many elements. Longer lists do not fit into a transaction. */
const list =
  (element: Field): Field =>
  (data, at) => {
    const count = data[at] ?? 128;
    return count < 128 ? all(...Array.from({ length: count }, () => element))(data, at + 1) : undefined;
  };

/** An unsigned number in LEB128: seven bits a byte, at most ten bytes. */
const compact: Field = (data, at) => {
  const end = data.subarray(at, at + 10).findIndex((byte) => byte < 128);
  return end < 0 ? undefined : at + end + 1;
};

const integer = (size: number) => all(bytes(size), below(8));
const equatable = (size: number) => all(bytes(size), below(2));
const flag = all(below(2), below(2));
const optional = (size: number) => all(oneOf(bytes(0), bytes(size)), below(2));

const dataValue = oneOf(
  flag,
  ...[1, 1, 2, 2, 4, 4, 8, 8, 16, 16].map(integer),
  all(list(bytes(1)), below(2)),
  equatable(32),
);
const accountData = all(compact, dataValue);
const accountDelta = oneOf(
  all(compact, oneOf(integer(16), integer(16), below(2), integer(16))),
  all(compact, compact, oneOf(...[2, 2, 4, 4, 8, 8, 16, 16].map(integer), equatable(2))),
);
/** Lamports, data length, owner, known owner, rent epoch, signer, writable, executable, hash of the data. */
const accountInfo = oneOf(
  ...[integer(8), integer(8), equatable(32), all(below(9), below(2)), integer(8)],
  ...[flag, flag, flag, all(bytes(32), compact, compact)],
);
const mintAccount = oneOf(optional(32), integer(8), integer(1), flag, optional(32));
const tokenAccount = oneOf(
  ...[equatable(32), equatable(32), integer(8), optional(32), integer(1)],
  ...[optional(8), integer(8), optional(32), bytes(0)],
);

/** Silent, plain, encoded, and the two latter on failure. Levels 3 and 6 call another program to log. */
const logLevel = oneOf(bytes(0), bytes(0), bytes(0), () => undefined, bytes(0), bytes(0));

type Form = { name: string; accounts: number; layout: Field; readsFeePayer?: true };

const form = (name: string, assertion: Field, more?: Partial<Form>): Form => ({
  ...{ name, accounts: 1, layout: all(logLevel, assertion) },
  ...more,
});

/** The forms that are accepted, by the first byte of the instruction's data. They only read the accounts they name. */
const forms: Readonly<Record<number, Form>> = {
  2: form("AssertAccountData", accountData),
  3: form("AssertAccountDataMulti", list(accountData)),
  4: form("AssertAccountDelta", accountDelta, { accounts: 2 }),
  5: form("AssertAccountInfo", accountInfo, { readsFeePayer: true }),
  6: form("AssertAccountInfoMulti", list(accountInfo), { readsFeePayer: true }),
  7: form("AssertMintAccount", mintAccount),
  8: form("AssertMintAccountMulti", list(mintAccount)),
  9: form("AssertTokenAccount", tokenAccount),
  10: form("AssertTokenAccountMulti", list(tokenAccount)),
};

/** Why the other instructions are refused; see docs/decisions/wallet-guards.md. */
const refused: Readonly<Record<number, string>> = {
  0: "MemoryWrite, which a payer funds",
  1: "MemoryClose, which closes an account",
  11: "AssertStakeAccount, and a payment has no stake account",
  12: "AssertStakeAccountMulti, and a payment has no stake account",
  13: "AssertUpgradeableLoaderAccount, and a payment has no program account to check",
  14: "AssertUpgradeableLoaderAccountMulti, and a payment has no program account to check",
  15: "AssertSysvarClock, which makes a payment fail by the time at which it lands",
  16: "AssertMerkleTreeAccount, which calls another program",
  17: "AssertBubblegumTreeConfigAccount, and a payment has no Merkle tree",
};

/**
 * Returns the reasons to refuse a wallet's guards: too many, a form that is not accepted, bytes or accounts that are not
 * of its form, or the fee payer in a form other than an assertion about an account's info.
 */
export function validateGuards(guards: readonly PlainInstruction[], feePayer: string): string[] {
  const count = `there are ${guards.length} Lighthouse guards, ${MOST_GUARDS} are allowed`;
  return [
    ...(guards.length > MOST_GUARDS ? [count] : []),
    ...guards.flatMap((one) => validateGuard(one, feePayer) ?? []),
  ];
}

function validateGuard({ number, accounts, data }: PlainInstruction, feePayer: string): string | undefined {
  const kind = data[0];
  const at = `instruction ${number} of Lighthouse`;
  const known = kind === undefined ? undefined : forms[kind];
  if (!known) return `${at} is ${(kind !== undefined && refused[kind]) || `of the unknown kind ${kind ?? "(empty)"}`}`;
  if (known.layout(data, 1) !== data.length) return `${at}, ${known.name}, is not in the form that its source defines`;
  if (accounts.length !== known.accounts)
    return `${at}, ${known.name}, names ${accounts.length} accounts, its form has ${known.accounts}`;
  if (!known.readsFeePayer && accounts.includes(feePayer))
    return `${at}, ${known.name}, names the fee payer ${feePayer}, which only AssertAccountInfo may`;
  return undefined;
}
