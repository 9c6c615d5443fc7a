import type { TokenKind } from "./evm-tokens.ts";
import type { Random } from "./seeded-random.ts";

/** The chain families on which payments are made. */
export const families = ["evm", "solana"] as const;
export type Family = (typeof families)[number];

const succeeds = ["succeeded"] as const;
const fails = ["cancelled", "expired", "failed"] as const;
const anyEnd = [...succeeds, ...fails] as const;

/** A kind's token where it is not USDC, its allowed ends, and whether it may end only after its authorization expires. */
type KindRule = { token?: TokenKind; ends: readonly string[]; endsAfterExpiry?: true };

/**
 * The kinds of payments. `relayed`: a third party relays the authorization as well. `blocked`, `spent`: the payer is
 * added to the token's block list, or spends the money elsewhere, during the payment; temporarily, or for good. `late`:
 * confirmed close to its deadline. `test`: made with a test key. `permit2`: paid by Permit2. `push`: paid by the buyer's
 * own transaction, which moves nothing when a reorg removes it and it is mined again while its token is paused; `stuck
 * push`: by a transaction that can never be mined. `wallet`: paid by a contract wallet (ERC-1271); `burner`: by one that
 * burns gas; `hostile`: by one that reverts with hostile text. `garbage`: a third party confirms the payment with forged
 * signatures.
 */
const kinds = {
  plain: { ends: succeeds },
  relayed: { ends: succeeds },
  blocked: { ends: ["succeeded", "cancelled", "failed"] },
  "blocked for good": { ends: anyEnd, endsAfterExpiry: true },
  spent: { ends: ["succeeded", "cancelled", "failed"] },
  "spent for good": { ends: anyEnd, endsAfterExpiry: true },
  late: { ends: ["succeeded", "expired"] },
  test: { ends: succeeds },
  permit2: { token: "permit2", ends: succeeds },
  "permit2 relayed": { token: "permit2", ends: succeeds },
  push: { token: "push", ends: ["succeeded", "expired"], endsAfterExpiry: true },
  "late push": { token: "push", ends: ["succeeded", "expired"], endsAfterExpiry: true },
  "stuck push": { token: "push", ends: ["cancelled", "expired"] },
  wallet: { ends: succeeds },
  burner: { ends: fails, endsAfterExpiry: true },
  hostile: { token: "permit2", ends: anyEnd, endsAfterExpiry: true },
  garbage: { ends: anyEnd },
} as const satisfies Record<string, KindRule>;
export type Kind = keyof typeof kinds;

/** Returns the token with which a payment of a kind is made on EVM. */
export function tokenOf(kind: Kind): TokenKind {
  const rule: KindRule = kinds[kind];
  return rule.token ?? "usdc";
}

/** Returns whether a payment of a kind may end only after the payer's authorization has expired on the chain. */
export function mayEndAfterExpiry(kind: Kind): boolean {
  const rule: KindRule = kinds[kind];
  return rule.endsAfterExpiry === true;
}

/** The conditions of a seed that change how payments may end. */
export type Conditions = {
  /** The issuer of a token charges a fee on transfers: only a part of what buyers send arrives. */
  takesFees: boolean;
};

/**
 * Returns how a payment of a kind may end; an honest one has only one end. On Solana it may also expire: the signed
 * transaction expires with its blockhash, and the faults expire blockhashes.
 */
export function endsOf(
  { family, kind }: Pick<Plan, "family" | "kind">,
  { takesFees }: Conditions = { takesFees: false },
): readonly string[] {
  if (takesFees && tokenOf(kind) !== "usdc") return anyEnd;
  return family === "solana" && kind === "plain" ? [...kinds[kind].ends, "expired"] : kinds[kind].ends;
}

/** The shares of the kinds in percent; the rest is plain. Solana payments need our signature, so no one else can relay them. */
const shares: Record<Family, Partial<Record<Kind, number>>> = {
  evm: {
    relayed: 8,
    blocked: 3,
    "blocked for good": 2,
    spent: 3,
    "spent for good": 2,
    late: 3,
    test: 3,
    permit2: 10,
    "permit2 relayed": 3,
    push: 8,
    "late push": 3,
    "stuck push": 1,
    wallet: 4,
    burner: 2,
    hostile: 2,
    garbage: 2,
  },
  solana: { "spent for good": 4, late: 4, test: 4 },
};
/** The percentage of payments on Solana in a run on both families. */
const onSolana = 35;

export type Plan = {
  index: number;
  family: Family;
  kind: Kind;
  /** When the merchant creates the payment, milliseconds after the start of the run. */
  at: number;
  cents: number;
  /** The lifetime until its deadline, seconds. */
  lives: number;
  /** Whether the merchant's server repeats the creation, and sends another body under the same key once. */
  repeatsCreation: boolean;
  /** Whether the wallet sends its confirm twice at the same time. */
  confirmsTwice: boolean;
};

/** Returns the given number of payments, spread evenly over time, with every kind among them. */
export function planPayments(
  random: Random,
  args: { payments: number; everyMs: number; chains: readonly Family[] },
): Plan[] {
  const { payments, everyMs, chains } = args;
  const there = chains.length === 1 ? payments : Math.round((payments * onSolana) / 100);
  const assigned = [
    ...(chains.includes("evm") ? assignKinds("evm", payments - (chains.includes("solana") ? there : 0)) : []),
    ...(chains.includes("solana") ? assignKinds("solana", there) : []),
  ];
  return random.shuffle(assigned).map(({ family, kind }, index) => ({
    index,
    family,
    kind,
    at: index * everyMs + random.between(0, everyMs),
    cents: random.between(1, 5_000),
    lives: kind.startsWith("late") ? random.between(3, 6) : 600,
    repeatsCreation: random.chance(0.2),
    confirmsTwice: random.chance(0.2),
  }));
}

function assignKinds(family: Family, payments: number): Pick<Plan, "family" | "kind">[] {
  const assigned = Object.entries(shares[family]).flatMap(([kind, share]) =>
    Array<Kind>(Math.max(1, Math.round((payments * share) / 100))).fill(kind as Kind),
  );
  const plain = Array<Kind>(Math.max(0, payments - assigned.length)).fill("plain");
  return [...assigned, ...plain].slice(0, payments).map((kind) => ({ family, kind }));
}
