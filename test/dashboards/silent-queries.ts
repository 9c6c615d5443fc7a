/** Queries without an answer on the local stack, by panel and by what their series are called, with the reason. */
export const silentQueries: Readonly<Record<string, string>> = {
  "Calls that the budget of an endpoint allows now, worst process: {{chain}} {{endpoint}}":
    "no endpoint of the local stack has `callsPerMinute`",
  "Fees kept, by asset: {{asset}}": "no fee is set",
  "Destination changes that wait (0): service, {{mode}}": "shown only while a change waits",
  "Destination changes that wait (0): signer": "shown only while a change waits",
  "Destination changes that wait (0): signer, approval keys": "shown only while a key waits",
  "Hot balance of the treasury: {{asset}}": "the local limits file has no `hotBalance`",
  "Hot balance of the treasury: floor {{asset}}": "the local limits file has no `hotBalance`",
  "Hot balance of the treasury: ceiling {{asset}}": "the local limits file has no `hotBalance`",
  "Transfers to the cold address: {{asset}}": "the local limits file has no `cold`",
};

/** Returns why no query of a panel has an answer, for people who see its picture. */
export function findReason(title: string): string | undefined {
  const of = Object.entries(silentQueries).find(([name]) => name.startsWith(`${title}: `));
  return of?.[1].replaceAll("`", "");
}
