import { startTestConsole } from "./console.ts";
import { enableCopyButton } from "./copy.ts";
import { startPaying } from "./pay.ts";
import { followStatus } from "./poll.ts";
import { apply, begin, version } from "./state.ts";

// The order matters: listeners are registered before the first status is applied.
enableCopyButton();
startTestConsole();
const { pollNow } = followStatus(version, apply);
begin(pollNow);
startPaying();
