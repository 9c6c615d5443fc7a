// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// The fees of the OP Stack's predeploy since the Jovian upgrade, for data that does not compress.
contract GasPriceOracle {
    uint256 private l1FeeScaled;
    uint256 private operatorFeeScalar;
    uint256 private operatorFeeConstant;

    function set(uint256 l1FeeScaled_, uint256 operatorFeeScalar_, uint256 operatorFeeConstant_) external {
        (l1FeeScaled, operatorFeeScalar, operatorFeeConstant) = (l1FeeScaled_, operatorFeeScalar_, operatorFeeConstant_);
    }

    /// Fjord: at least 100 bytes, -42,585,600 + 836,500 times the size, and 68 bytes for the signature.
    function getL1Fee(bytes calldata data) external view returns (uint256) {
        uint256 scaled = 836500 * (data.length + 68);
        scaled = scaled > 142585600 ? scaled - 42585600 : 100000000;
        return (scaled * l1FeeScaled) / 1e12;
    }

    function getOperatorFee(uint256 gasUsed) external view returns (uint256) {
        return gasUsed * operatorFeeScalar * 100 + operatorFeeConstant;
    }
}

/// Arbitrum's ArbSys. It returns the number of the block that the call names, where `block.number` is the parent chain's.
contract ArbSys {
    function arbBlockNumber() external view returns (uint256) {
        return block.number;
    }
}

/// The estimate of Arbitrum's NodeInterface, for data that does not compress.
contract NodeInterface {
    uint256 private baseFee = 1;
    uint256 private weiPerByte;

    function set(uint256 baseFee_, uint256 weiPerByte_) external {
        (baseFee, weiPerByte) = (baseFee_, weiPerByte_);
    }

    function gasEstimateL1Component(address, bool, bytes calldata data) external payable returns (uint64, uint256, uint256) {
        return (uint64((data.length * weiPerByte) / baseFee), baseFee, weiPerByte / 16);
    }
}
