// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A sequencer uptime feed like Chainlink's: 0 if the sequencer is up, 1 if it is down, and since when.
contract Sequencer {
    int256 private answer;
    uint256 private startedAt = 1;

    function set(int256 answer_, uint256 startedAt_) external {
        answer = answer_;
        startedAt = startedAt_;
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (1, answer, startedAt, startedAt, 1);
    }
}

/// A price feed like Chainlink's.
contract Feed {
    int256 private answer = 108500000;
    uint256 private updatedAt = block.timestamp;
    string public description = "EUR / USD";
    uint8 public constant decimals = 8;

    function set(int256 answer_, uint256 updatedAt_) external {
        answer = answer_;
        updatedAt = updatedAt_;
    }

    function describe(string calldata description_) external {
        description = description_;
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (1, answer, updatedAt, updatedAt, 1);
    }
}
