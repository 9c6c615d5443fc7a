import { posix } from "node:path";
import { blankComments, lineOf, type Source, valueImports } from "./source-text.ts";

/** Code that depends on the chain family. */
export type FamilyBranch = { path: string; line: number; code: string };

/** The places that may depend on the chain family. All other code calls the family's driver. */
const allowedPlaces = [
  /^chains\//,
  /^transfers\/(evm|solana)\//,
  // Signs transactions of clusters.
  /^signer\/solana\//,
  // Finds the driver of a chain.
  /^transfers\/find-transfer-driver\.ts$/,
  /^runtime\/networks\//,
  // The forms of CAIP ids.
  /^runtime\/caip-patterns\.ts$/,
  // The scripts of a page cannot import the drivers.
  /^api\/checkout\/client\/find-(evm|solana)-wallets\.ts$/,
  // The signer of each family, which the wallet's program chooses.
  /^client\/(viem|solana)\.ts$/,
  // The types of rows and of what wallets return, whose members differ by family.
  /^db\/chain-families\.ts$/,
  /^transfers\/verification\.ts$/,
  // Finds the checks of a chain before it goes live, and those of each family.
  /^ops\/preflight\/(open-family\.ts|evm\/|solana\/)/,
  // The local stack starts an EVM chain and a Solana cluster.
  /^local\//,
  // Pays with the buyers of the local stack.
  /^cli\/pay-as-buyer\.ts$/,
  // Commands about contracts and keys of EVM chains.
  /^ops\/admin\/((collector|disburser|keystore)-commands|deploy-contract)\.ts$/,
  // Reports the library that verifies the signatures of EVM chains.
  /^workers\/main\.ts$/,
  // The keys that the jobs of each queue sign with, by family.
  /^workers\/queue-keys\.ts$/,
  // The names of the SQL files.
  /^db\/migrations\//,
  /^scripts\//,
];

/** The folders of one family. Types may be imported from them everywhere. */
const familyFolder = /^(chains|transfers)\/(evm|solana)\//;

const branches = [
  // A namespace by itself or before a reference. A longer text, such as an example in a message, is no branch.
  /(["'`])(eip155|solana):?\1/g,
  /`(eip155|solana):\$\{/g,
  /\/\^\(?(eip155|solana)\b/g,
  // Three dots spread an object that is named so.
  /(?<!\.)\.(family|namespace)\b/g,
  /\b(getEvmChain|getSolanaChain|listEvmNetworks)\b/g,
  /\bkind [!=]== "spl"/g,
  /"\w+" in (\w+\.)?(chain|network|token)\b/g,
];

/** Returns the code that depends on the chain family in a place where it may not. */
export function findFamilyBranches(sources: readonly Source[]): FamilyBranch[] {
  return sources.flatMap(({ path, text }) => {
    if (allowedPlaces.some((place) => place.test(path))) return [];
    const code = blankComments(text);
    const imports = valueImports(text).filter(({ target }) =>
      familyFolder.test(posix.join(posix.dirname(path), target)),
    );
    return [
      ...imports.map(({ target, line }) => ({ path, line, code: target })),
      ...branches.flatMap((branch) =>
        [...code.matchAll(branch)].map((match) => ({ path, line: lineOf(text, match.index), code: match[0] })),
      ),
    ];
  });
}
